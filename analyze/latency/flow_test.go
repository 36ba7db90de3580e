package latency

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/internal/testtools/truth"
)

// interval is a call, or a Read, in flight.
type interval struct {
	start, end int64
	granted    uint32
}

// levelsOf computes times at each level, and the time at the limit, by going
// through all moments at which something changes.
func levelsOf(list []interval) (levels map[int]int64, most int, limited, known int64) {
	levels = make(map[int]int64)
	var moments []int64
	for _, x := range list {
		moments = append(moments, x.start, x.end)
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	for i := 0; i+1 < len(moments); i++ {
		t, dt := moments[i], moments[i+1]-moments[i]
		n := 0
		granted, last := uint32(0), int64(math.MinInt64)
		for _, x := range list {
			if x.start <= t && t < x.end {
				n++
			}
			if x.end <= t && x.end >= last && x.granted > 0 {
				granted, last = x.granted, x.end
			}
		}
		levels[n] += dt
		most = max(most, n)
		if granted > 0 {
			known += dt
			if n >= int(granted) {
				limited += dt
			}
		}
	}
	return levels, most, limited, known
}

func sameLevels(t *testing.T, what string, got []Level, want map[int]int64) {
	t.Helper()
	n := 0
	for _, l := range got {
		n++
		if d := l.Time - want[l.N]; d > 1000 || d < -1000 {
			t.Errorf("%s: %d ns with %d in flight, want %d", what, l.Time, l.N, want[l.N])
		}
	}
	for _, v := range want {
		if v > 0 {
			n--
		}
	}
	if n != 0 {
		t.Errorf("%s: levels %v, want %v", what, got, want)
	}
}

// TestInFlight computes from the transactions of each sample, by brute force,
// how many calls and Reads were in flight, and what chunks and thresholds come
// to.
func TestInFlight(t *testing.T) {
	for _, file := range sampled.Captures(t, "*") {
		calls := make(map[[2]int][]interval)
		reads := make(map[int][]interval)
		var area float64
		var lines bytes.Buffer
		var enc ndjson.Encoder
		rep := record(t, file, Options{Inline: []uint32{1024, 4096}}, func(v *rpc.View) {
			tx := v.Tx
			lines.Write(append(enc.Append(nil, v), '\n'))
			if !tx.Call.Seen() || !tx.Reply.Seen() {
				return
			}
			way := 0
			if tx.Backward {
				way = 1
			}
			x := interval{tx.Call.First.Time, tx.Reply.Last.Time, 0}
			if tx.Reply.Transport {
				x.granted = tx.Reply.Header.Credits
			}
			k := [2]int{tx.Connection.ID, way}
			calls[k] = append(calls[k], x)
			area += float64(x.end - x.start)
			for _, o := range tx.Operations {
				if o.Kind == rdma.Read && o.Last.Seen() {
					reads[k[0]] = append(reads[k[0]], interval{o.First.Time, o.Last.Time, 0})
				}
			}
		})
		for _, c := range rep.Connections {
			for way, f := range []*Flow{c.Forward, c.Backward} {
				list := calls[[2]int{c.Connection, way}]
				if f == nil {
					if len(list) > 0 {
						t.Errorf("%s: connection %d has no flow", file, c.Connection)
					}
					continue
				}
				levels, most, limited, known := levelsOf(list)
				sameLevels(t, filepath.Base(file), f.Levels, levels)
				if f.Most != most {
					t.Errorf("%s: connection %d: %d in flight, want %d", file, c.Connection, f.Most, most)
				}
				if math.Abs(float64(f.AtLimit-limited)) > 1000 || math.Abs(float64(f.Known-known)) > 1000 {
					t.Errorf("%s: connection %d: %d of %d ns at the limit, want %d of %d", file, c.Connection, f.AtLimit, f.Known, limited, known)
				}
			}
			if c.Reads != nil {
				levels, most, _, _ := levelsOf(reads[c.Connection])
				sameLevels(t, filepath.Base(file)+" Reads", c.Reads.Levels, levels)
				if c.Reads.Most != most {
					t.Errorf("%s: connection %d: %d Reads in flight, want %d", file, c.Connection, c.Reads.Most, most)
				}
			}
		}
		var sum float64
		for _, s := range rep.Series.Slots {
			sum += s.InFlight * float64(rep.Series.Interval)
		}
		if math.Abs(sum-area) > 1e-6*area+10 {
			t.Errorf("%s: calls in flight over time come to %v ns, want %v", file, sum, area)
		}
		economy(t, file, rep, &lines)
	}
}

// economy computes what chunks offered and used, and which messages fit, from
// the ndjson.
func economy(t *testing.T, file string, rep *Report, lines *bytes.Buffer) {
	t.Helper()
	list, err := truth.ReadTransactions(lines)
	if err != nil {
		t.Fatal(err)
	}
	var want ChunkEconomy
	fits := map[uint32]*Inline{1024: {}, 4096: {}}
	length := func(s []truth.SegmentJSON) (n uint64) {
		for _, x := range s {
			n += uint64(x.Length)
		}
		return n
	}
	for _, tx := range list {
		if !tx.OverRDMA() || tx.State != "complete" {
			continue
		}
		want.Transactions++
		for _, c := range tx.ReadChunks {
			use := &want.Read
			if c.Position == 0 {
				use = &want.PositionZero
			}
			use.Chunks++
			use.Segments += uint64(len(c.Segments))
			use.Offered += length(c.Segments)
		}
		used := uint64(0)
		for i, c := range tx.WriteChunks {
			want.Write.Chunks++
			want.Write.Offered += length(c)
			if i < len(tx.WrittenChunks) {
				want.Write.Used += length(tx.WrittenChunks[i])
				used += length(tx.WrittenChunks[i])
			}
		}
		if tx.ReplyChunk != nil {
			want.Reply.Chunks++
			want.Reply.Offered += length(tx.ReplyChunk)
			want.Reply.Used += length(tx.WrittenReplyChunk)
			used += length(tx.WrittenReplyChunk)
		}
		if len(tx.ReadChunks) == 0 {
			want.InlineCalls++
		}
		if used == 0 {
			want.InlineReplies++
		}
		for limit, x := range fits {
			call, reply := tx.CallBytes+28 <= uint64(limit), tx.ReplyBytes+28 <= uint64(limit)
			if call {
				x.Calls++
			}
			if reply {
				x.Replies++
				if used > 0 {
					x.FreedReplies++
				}
			} else if used == 0 {
				x.NewReplies++
			}
			if call && len(tx.ReadChunks) > 0 {
				x.FreedCalls++
			}
			item := func(n uint64) {
				if n > 0 && n < uint64(limit) {
					x.SmallItems++
					x.SmallBytes += n
				}
			}
			for _, c := range tx.ReadChunks {
				if c.Position != 0 {
					item(length(c.Segments))
				}
			}
			for i := range min(len(tx.WriteChunks), len(tx.WrittenChunks)) {
				item(length(tx.WrittenChunks[i]))
			}
		}
	}
	got := rep.All.Chunks
	for _, x := range [][2]uint64{
		{got.Transactions, want.Transactions}, {got.InlineCalls, want.InlineCalls}, {got.InlineReplies, want.InlineReplies},
		{got.Read.Chunks, want.Read.Chunks}, {got.Read.Segments, want.Read.Segments}, {got.Read.Offered, want.Read.Offered},
		{got.PositionZero.Chunks, want.PositionZero.Chunks}, {got.PositionZero.Offered, want.PositionZero.Offered},
		{got.Write.Chunks, want.Write.Chunks}, {got.Write.Offered, want.Write.Offered}, {got.Write.Used, want.Write.Used},
		{got.Reply.Chunks, want.Reply.Chunks}, {got.Reply.Offered, want.Reply.Offered}, {got.Reply.Used, want.Reply.Used},
	} {
		if x[0] != x[1] {
			t.Errorf("%s: chunks %+v, want %+v", file, got, want)
			break
		}
	}
	for _, x := range rep.All.Inline {
		w := fits[x.Threshold]
		if x.Calls != w.Calls || x.Replies != w.Replies || x.FreedCalls != w.FreedCalls || x.FreedReplies != w.FreedReplies || x.NewReplies != w.NewReplies ||
			x.SmallItems != w.SmallItems || x.SmallBytes != w.SmallBytes {
			t.Errorf("%s: threshold %+v, want %+v", file, x, w)
		}
	}
}

// random makes transactions whose times mean nothing: forwards, backwards, far
// away, with connections, files and credits without end.
func random(r *rand.Rand, n int, do func(*rpc.View)) {
	var v rpc.View
	now := int64(1e18)
	for i := range n {
		now += r.Int64N(1e6)
		at := func() int64 {
			switch r.IntN(40) {
			case 0:
				return r.Int64() // centuries from here
			case 1:
				return -r.Int64()
			case 2:
				return now - r.Int64N(1e12)
			}
			return now + r.Int64N(1e7)
		}
		ref := func() rdma.Ref {
			if r.IntN(30) == 0 {
				return rdma.Ref{}
			}
			return rdma.Ref{Time: at(), Number: uint64(i + 1)}
		}
		c := &rdma.Connection{ID: r.IntN(5000) + 1, Fabric: rdma.Fabric(1 + r.IntN(6))}
		c.Ends[0].Addr = netip.AddrFrom4([4]byte{10, byte(r.IntN(256)), byte(r.IntN(256)), 1})
		tx := &transaction.Transaction{
			Connection: c, XID: r.Uint32(), Named: r.IntN(10) > 0, Program: 100000 + r.Uint32N(4000), Version: r.Uint32N(5), Procedure: r.Uint32N(40),
			State: transaction.State(r.IntN(4)), Backward: r.IntN(9) == 0, Reads: r.IntN(3), Retransmits: r.IntN(2),
		}
		tx.Call.First = ref()
		tx.Call.Last = tx.Call.First
		tx.Reply.First = ref()
		tx.Reply.Last = tx.Reply.First
		tx.Call.Transport, tx.Reply.Transport = r.IntN(2) == 0, r.IntN(2) == 0
		tx.Call.Header.Version, tx.Call.Header.Credits = 1, r.Uint32()
		tx.Reply.Header.Credits = r.Uint32() >> r.IntN(32)
		tx.Call.Bytes, tx.Reply.Bytes = r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64)
		tx.Call.Header.Writes = []rpcrdma.WriteChunk{{{Length: r.Uint32()}}}
		tx.Call.Header.Reads = []rpcrdma.ReadSegment{{Position: r.Uint32N(2), Segment: rpcrdma.Segment{Length: r.Uint32()}}}
		for range r.IntN(3) {
			tx.Operations = append(tx.Operations, transaction.Operation{Kind: rdma.Read, From: rdma.Side(r.IntN(2)), First: ref(), Last: ref()})
			tx.Troubles = append(tx.Troubles, transaction.Trouble{Kind: rdma.Event(r.IntN(12)), Ref: ref(), Own: r.IntN(2) == 0})
		}
		if r.IntN(5) == 0 {
			tx.Notes = []transaction.Note{{Kind: transaction.ResentFrom, N: 1}, {Kind: transaction.ReplyRepeated}}
		}
		v.Set(tx)
		do(&v)
	}
}

// Whatever the transactions say, nothing panics, memory has a bound, and the
// report is JSON.
func TestHostile(t *testing.T) {
	n := 60000
	if testing.Short() {
		n = 10000
	}
	for seed, by := range [][]Key{nil, {ByConnection}, {ByClient, ByModel}, {ByStatus, BySize, ByFile, ByFabric}} {
		r := rand.New(rand.NewPCG(uint64(seed), 99))
		rec := New(Options{By: by, Top: 100, Inline: DefaultInline, Interval: time.Duration(seed) * time.Microsecond})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		count := uint64(0)
		random(r, n, func(v *rpc.View) {
			rec.Add(v)
			rec.Closed(v.Tx.Connection)
			rec.Observer().Event(nil, 0, rdma.Event(r.IntN(14)), 0, v.Tx.First())
			count++
		})
		runtime.GC()
		runtime.ReadMemStats(&after)
		if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > 80<<20 {
			t.Errorf("%v: %d MiB", by, got>>20)
		}
		rep := rec.Report(Source{First: rdma.Ref{Time: math.MinInt64}, Last: rdma.Ref{Time: math.MaxInt64}})
		if rep.All.Count != count || len(rep.Groups) > maxGroups+1 || len(rep.Series.Slots) > maxSlots || len(rep.Connections) > maxAudited {
			t.Errorf("%v: %d transactions, %d groups, %d intervals, %d connections", by, rep.All.Count, len(rep.Groups), len(rep.Series.Slots), len(rep.Connections))
		}
		calls := uint64(0)
		for _, s := range rep.Series.Slots {
			calls += s.Calls
		}
		if calls != count {
			t.Errorf("%v: %d calls over time, want %d", by, calls, count)
		}
		if len(rep.Notes) == 0 {
			t.Errorf("%v: no notes", by)
		}
		if _, err := json.Marshal(rep); err != nil {
			t.Errorf("%v: %v", by, err)
		}
		Compare(rep, rep)
	}
}
