package monitor

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
	"github.com/rpcrdma/toolkit/internal/testtools/spent"
)

// TestOpen looks at what is open after each few packets of real captures: all phases arrive, and figures hold
// together.
func TestOpen(t *testing.T) {
	seen := make(map[transaction.Phase]int)
	flying := 0
	for _, name := range []string{"rocev2-nfs3-bulk.pcap.zst", "rocev2-nfs3-basic.pcap.zst", "iwarp-nfs3-crc.pcap.zst"} {
		m := New(Options{})
		for i, list := 0, packets(t, name); i < len(list); i++ {
			m.Packets(list[i : i+1])
			if i%3 != 0 || testing.Short() && i%5 > 0 {
				continue
			}
			s := m.Snapshot()
			open := 0
			for j := range s.Rows {
				x := &s.Rows[j]
				if x.Open {
					open++
				}
				if x.Ended != 0 {
					continue
				}
				seen[x.Phase]++
				flying += x.Reads + x.Writes
				for _, c := range x.Progress {
					if c.Moved > c.Asked || c.Asked > c.Offered {
						t.Fatalf("%s, packet %d: XID %#x: %+v", name, i+1, x.XID, c)
					}
				}
				switch {
				case x.Phase == transaction.PhasePush && x.Moved == 0 && x.Writes == 0:
					t.Errorf("%s, packet %d: XID %#x pushes nothing", name, i+1, x.XID)
				case x.Phase == transaction.PhaseWait && (x.Moved != 0 || x.Reads != 0):
					t.Errorf("%s, packet %d: XID %#x waits with %d bytes moved", name, i+1, x.XID, x.Moved)
				case x.Open != (x.Phase != transaction.PhaseAck), x.Age < 0, x.Idle > x.Age && x.Open:
					t.Errorf("%s, packet %d: %+v", name, i+1, *x)
				}
			}
			if open != s.Open {
				t.Fatalf("%s, packet %d: %d rows, %d open", name, i+1, open, s.Open)
			}
			used := 0
			for _, c := range s.Connections {
				used += c.Used + c.Backward
			}
			if used != s.Open {
				t.Fatalf("%s, packet %d: %d credits in use, %d calls open", name, i+1, used, s.Open)
			}
		}
	}
	for _, p := range [...]transaction.Phase{transaction.PhaseWait, transaction.PhasePull, transaction.PhaseServer, transaction.PhasePush, transaction.PhaseAck} {
		if seen[p] == 0 {
			t.Errorf("no transaction was seen in phase %v", p)
		}
	}
	if flying == 0 {
		t.Error("no operation was seen in flight")
	}
}

// TestStuck wants calls that nobody answers to be marked when their time is
// over, and not before.
func TestStuck(t *testing.T) {
	traffic := rocetest.Make(rocetest.Config{
		Calls: 6, Outstanding: 6, CM: true, StayOpen: true, Kinds: []rocetest.Kind{rocetest.Silent}, Start: at(0),
	})
	frames := rocetest.Frames(rocetest.Merge(nil, traffic.Taps[0]))
	m := New(Options{Stuck: 3 * time.Second})
	m.Packets(frames)
	last := frames[len(frames)-1].Time
	if s := m.Snapshot(); s.Open != 6 || s.Stuck != 0 {
		t.Fatalf("%d open, %d stuck", s.Open, s.Stuck)
	}
	m.Advance(last + 2*second)
	if s := m.Snapshot(); s.Stuck != 0 {
		t.Errorf("%d stuck after two seconds", s.Stuck)
	}
	m.Advance(last + 4*second)
	s := m.Snapshot()
	if s.Open != 6 || s.Stuck != 6 || s.Oldest < 4*second || s.Connections[0].Stuck != 6 || s.Connections[0].Used != 6 {
		t.Errorf("%d open, %d stuck, oldest %d, %+v", s.Open, s.Stuck, s.Oldest, s.Connections)
	}
	for i := range s.Rows {
		if !s.Rows[i].Stuck || s.Rows[i].Phase != transaction.PhaseServer {
			t.Errorf("%+v", s.Rows[i])
		}
	}
	if n := len(s.History); n < 3 || s.History[n-1].Open != 6 || s.History[n-1].Stuck != 6 {
		t.Errorf("history: %+v", s.History)
	}
	m.Flush(nil)
	s = m.Snapshot()
	if s.Open != 0 || len(s.Rows) != 6 || s.Rows[0].State != transaction.NoReply || s.Rows[0].Status != "no reply" {
		t.Errorf("at the end: %d open, %+v", s.Open, s.Rows)
	}
}

// TestWatch follows one transaction from its call to long after its end.
func TestWatch(t *testing.T) {
	list := packets(t, "rocev2-nfs3-bulk.pcap.zst")
	m := New(Options{})
	i := 0
	var serial uint64
	for ; serial == 0; i++ {
		m.Packets(list[i : i+1])
		for _, x := range m.Snapshot().Rows {
			if x.Phase == transaction.PhasePull {
				serial = x.Serial
			}
		}
	}
	m.Watch(serial, 100, false)
	d := m.Snapshot().Detail
	if d == nil || !d.Found || d.Row.Serial != serial || d.Row.Ended != 0 || !strings.Contains(d.Text, "Read Request") {
		t.Fatalf("%+v", d)
	}
	m.Packets(list[i:])
	m.Flush(nil)
	d = m.Snapshot().Detail
	if !d.Found || d.Row.Ended == 0 || d.Row.Serial != serial || !strings.Contains(d.Text, "reply ok") || !strings.Contains(d.Text, "Results of nfs3 WRITE") {
		t.Errorf("%+v", d)
	}
	// Another one, and then one that does not exist.
	for _, x := range m.Snapshot().Rows {
		m.Watch(x.Serial, 80, true)
		s := m.Snapshot()
		if !s.Detail.Found || s.Detail.Row.XID != x.XID {
			t.Errorf("XID %#x: %+v", x.XID, s.Detail)
		}
		for _, r := range s.Detail.Text {
			if r > 127 && !strings.ContainsRune("µ…×", r) {
				t.Fatalf("XID %#x: %q is not ASCII", x.XID, r)
			}
		}
	}
	m.Watch(1<<40, 80, false)
	if d := m.Snapshot().Detail; d == nil || d.Found {
		t.Errorf("%+v", d)
	}
	m.Watch(0, 0, false)
	if d := m.Snapshot().Detail; d != nil {
		t.Errorf("%+v", d)
	}
}

// TestShownStays wants what a snapshot has shown to be there for a look into
// it, however much has ended since.
func TestShownStays(t *testing.T) {
	var x traffic
	m := New(Options{})
	next := uint32(1)
	run := func(n int) {
		for range n {
			now := at(int64(next) * 1e6)
			m.Packets([]capture.Packet{x.call(now, 1, 700, next, uint64(next)), x.reply(now+1000, 1, 700, next)})
			next++
		}
	}
	run(2000)
	s := m.Snapshot()
	if len(s.Rows) < maxOdd { // all of them failed
		t.Fatalf("%d rows", len(s.Rows))
	}
	// With the next snapshot, others are shown.
	for _, row := range []Row{s.Rows[0], s.Rows[len(s.Rows)/2], s.Rows[len(s.Rows)-1]} {
		run(500)
		if m.linger.find(row.Serial) == nil {
			t.Errorf("XID %d is gone", row.XID)
		}
	}
	m.Hold(true)
	s = m.Snapshot()
	run(5000)
	for _, row := range s.Rows {
		if m.linger.find(row.Serial) == nil {
			t.Errorf("XID %d is gone though the screen is frozen", row.XID)
		}
	}
	m.Hold(false)
	// One that was open when the screen froze, and ends then.
	open := next
	next++
	m.Packets([]capture.Packet{x.call(at(int64(next)*1e6), 1, 700, open, 1)})
	var row Row
	for _, r := range m.Snapshot().Rows {
		if r.XID == open && r.Open {
			row = r
		}
	}
	m.Hold(true)
	m.Packets([]capture.Packet{x.reply(at(int64(next)*1e6), 1, 700, open)})
	run(1000)
	m.Snapshot()
	m.Watch(row.Serial, 80, false)
	if d := m.Snapshot().Detail; !d.Found || d.Row.XID != open || d.Row.Ended == 0 {
		t.Errorf("a frozen open call: %+v", d)
	}
	m.Hold(false)
	run(1000)
	m.Snapshot()
	m.Snapshot()
	if n := m.linger.count(); n > maxRecent+maxSlow+maxOdd {
		t.Errorf("%d are kept", n)
	}
}

// TestFilter wants figures of what the filter lets pass, and of nothing else.
func TestFilter(t *testing.T) {
	f, err := filter.Compile("op == READ || op == WRITE")
	if err != nil {
		t.Fatal(err)
	}
	const file = samples + "/rocev2-nfs3-bulk.pcap.zst"
	want, _ := report(t, file)
	_, s := feed(t, file, Options{Filter: f, Groups: true})
	if len(s.Ops) != 2 || s.Filter != f.String() {
		t.Fatalf("%d operations", len(s.Ops))
	}
	var n uint64
	for _, o := range s.Ops {
		for _, g := range want.Groups {
			if g.Key[0] == o.Name && (g.Count != o.Total.Count || g.Latency.P99 != o.Total.Latency.P99) {
				t.Errorf("%s: %d", o.Name, o.Total.Count)
			}
		}
		n += o.Total.Count
	}
	var files, all uint64
	for _, x := range s.Files {
		files += x.Count
	}
	for _, g := range s.Groups {
		all += g.Count
	}
	if files != n || all != want.All.Count || s.Total.Count != n {
		t.Errorf("%d by file, %d in all, %d of all operations; want %d, %d", files, all, s.Total.Count, n, want.All.Count)
	}
	for i := range s.Rows {
		if op := s.Rows[i].Operation; op != "nfs3 READ" && op != "nfs3 WRITE" {
			t.Errorf("%s is listed", op)
		}
	}
}

// TestIntervals counts calls into the intervals in which they end.
func TestIntervals(t *testing.T) {
	var x traffic
	m := New(Options{Interval: time.Second, History: 5})
	intervals := 0
	m.Every(func() { intervals++ })
	for i := range 100 {
		now := at(int64(i) * 100e6) // ten a second
		m.Packets([]capture.Packet{x.call(now, 1, 700, uint32(i), 7), x.reply(now+2e6, 1, 700, uint32(i))})
	}
	s := m.Snapshot()
	if intervals != 9 || len(s.History) != 5 || !s.HasNow || s.NowSpan != time.Second {
		t.Fatalf("%d intervals, %d remembered", intervals, len(s.History))
	}
	for i, h := range s.History {
		if h.Count != 10 || h.Errors != 10 || h.P50 != 2e6 || h.P99 != 2e6 || h.Start != at(int64(4+i)*second) || h.Heat[band(2e6)] != 10 {
			t.Errorf("%d: %+v", i, h)
		}
	}
	if o := s.Ops[0]; o.Now.Count != 10 || o.Name != "nfs3 GETATTR" || len(o.Points) != 5 || s.Packets != 20 ||
		s.Rate(o.Now.Count) != 10 || s.InFlight() < 0.0199 || s.InFlight() > 0.0201 || s.Files[0].Now.Count != 10 || s.Connections[0].Now.Count != 10 {
		t.Errorf("%+v, %v in flight, %+v", o, s.InFlight(), s.Files)
	}
	m.SetInterval(2 * time.Second)
	if s := m.Snapshot(); len(s.History) != 0 || s.Ops[0].Total.Count != 100 || s.HasNow {
		t.Errorf("after a new interval: %+v", s.History)
	}
	m.Advance(at(60 * second))
	s = m.Snapshot()
	if len(s.History) != 5 || s.Now.Count != 0 || s.Ops[0].Now.Count != 0 || s.Files[0].Now.Count != 0 || s.Connections[0].Now.Count != 0 {
		t.Errorf("after a minute of silence: %+v", s.Now)
	}
}

// TestClock gives a model packets of clocks that jump: it goes on counting, and
// is not slow.
func TestClock(t *testing.T) {
	var x traffic
	m := New(Options{})
	times := []int64{0, 1 << 61, -1 << 61, 1<<63 - 1, -1 << 63, 3600 * second, at(0), at(86400 * 365 * second)}
	begin := spent.Time()
	for i := range 20000 {
		now := times[i%len(times)] + int64(i%7)
		m.Packets([]capture.Packet{x.call(now, 1, 700, uint32(i), 7), x.reply(now, 1, 700, uint32(i))})
	}
	if d := spent.Time() - begin; d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	m.Flush(nil)
	if s := m.Snapshot(); s.Total.Count != 20000 {
		t.Errorf("%d transactions", s.Total.Count)
	}
}

// heap is how much memory is in use.
func heapBytes() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestFlood wants bounded memory and quick snapshots whatever comes: calls that
// are never answered, of ever new clients, for ever new files, of invented
// programs; and noise.
func TestFlood(t *testing.T) {
	before := heapBytes()
	rng := rand.New(rand.NewPCG(1, 2))
	var x traffic
	m := New(Options{Groups: true})
	most, slowest := uint64(0), time.Duration(0)
	var list []capture.Packet
	count := 120_000
	if testing.Short() {
		count = 30_000
	}
	for i := range count {
		now := at(int64(i) * 50_000)
		client := uint32(0x0a000000 + i%50_000)
		list = append(list[:0], x.call(now, client, 700, uint32(i), rng.Uint64()))
		switch i % 4 {
		case 0:
			list = append(list, x.reply(now+10, client, 700, uint32(i)))
		case 1: // another program
			b := list[0].Data[42:]
			b[12], b[13], b[14], b[15] = 0x20, byte(i>>16), byte(i>>8), byte(i)
			list = append(list, x.reply(now+10, client, 700, uint32(i)))
		case 2: // noise
			b := list[0].Data
			for j := 42 + rng.IntN(20); j < len(b); j++ {
				b[j] = byte(rng.Uint32())
			}
		}
		m.Packets(list)
		if i%5000 == 0 {
			begin := spent.Time()
			s := m.Snapshot()
			slowest = max(slowest, spent.Time()-begin)
			if len(s.Rows) > maxOpenRows+maxRecent+maxSlow+maxOdd || len(s.Files) > listedUsage || len(s.Clients) > listedUsage ||
				len(s.Ops) > maxOperations+1 || len(s.History) > 240 {
				t.Fatalf("%d rows, %d files, %d clients, %d operations", len(s.Rows), len(s.Files), len(s.Clients), len(s.Ops))
			}
			if i%20_000 == 0 {
				most = max(most, heapBytes()-min(before, heapBytes()))
			}
		}
	}
	s := m.Snapshot()
	if s.Open == 0 || s.FilesRest == 0 || s.FilesGone.Count == 0 && !testing.Short() || s.Beyond == 0 {
		t.Errorf("%d open, %d beyond, %d more files", s.Open, s.Beyond, s.FilesRest)
	}
	var clients uint64
	for _, c := range m.all.clients.by {
		clients += c.Count + c.cur.Count
	}
	if got := clients + s.ClientsGone.Count; got != s.Total.Count {
		t.Errorf("%d transactions by client, %d in all", got, s.Total.Count)
	}
	if most > 96<<20 {
		t.Errorf("%d MiB in use", most>>20)
	}
	t.Logf("%d MiB at most, %v for a snapshot, %d transactions, %d open", most>>20, slowest, s.Total.Count, s.Open)
	if slowest > 2*time.Second {
		t.Errorf("a snapshot took %v", slowest)
	}
	runtime.KeepAlive(m)
}

// TestHour runs a model for an hour of the capture's time: memory does not
// grow.
func TestHour(t *testing.T) {
	var x traffic
	m := New(Options{Groups: true})
	var early, late uint64
	xid := uint32(0)
	var list []capture.Packet
	seconds := int64(3600)
	if testing.Short() {
		seconds = 480
	}
	for s := range seconds {
		list = list[:0]
		for i := range int64(60) {
			now := at(s*second + i*second/60)
			xid++
			client := uint32(0x0a000000 + xid%50)
			list = append(list, x.call(now, client, 700, xid, uint64(xid%5000)))
			if xid%1000 != 0 { // the others are stuck, until they are given up
				list = append(list, x.reply(now+int64(xid%1000)*1000, client, 700, xid))
			}
		}
		m.Packets(list)
		if s%8 == 0 {
			m.Snapshot()
		}
		switch s {
		case seconds / 4:
			early = heapBytes()
		case seconds - 1:
			late = heapBytes()
		}
	}
	s := m.Snapshot()
	if s.Total.Count+uint64(s.Open) != uint64(seconds)*60 || len(s.History) != 240 {
		t.Errorf("%d transactions and %d open", s.Total.Count, s.Open)
	}
	if late > early+4<<20 {
		t.Errorf("%d KiB after a quarter of the time, %d KiB after all of it", early>>10, late>>10)
	}
	t.Logf("%d KiB after a quarter of the time, %d KiB after all of it", early>>10, late>>10)
	runtime.KeepAlive(m)
}

// TestAllocations wants none on the way of a transaction, besides what is due
// once in an interval.
func TestAllocations(t *testing.T) {
	var x traffic
	m := New(Options{Interval: time.Hour})
	var list []capture.Packet
	for i := range uint32(2000) {
		now := at(int64(i) * 1000)
		list = append(list, x.call(now, 1, 700, i, uint64(i%10)), x.reply(now+500, 1, 700, i))
	}
	for range 20 {
		m.Packets(list)
	}
	least := 1e9
	for range 5 {
		least = min(least, testing.AllocsPerRun(1, func() { m.Packets(list) }))
	}
	if per := least / 2000; per > 0.01 {
		t.Errorf("%.3f allocations for a transaction", per)
	}
}

func TestBands(t *testing.T) {
	for b := range HeatBands {
		from := HeatFrom(b)
		if got := band(from); got != b {
			t.Errorf("band of %d is %d, want %d", from, got, b)
		}
		if b > 0 && band(from-1) != b-1 {
			t.Errorf("band of %d is %d, want %d", from-1, band(from-1), b-1)
		}
	}
	if band(-1) != 0 || band(1<<62) != HeatBands-1 {
		t.Error("the ends")
	}
}

func ExampleModel() {
	m := New(Options{})
	var x traffic
	m.Packets([]capture.Packet{x.call(at(0), 0xc0000202, 700, 7, 1)})
	m.Advance(at(2 * second))
	s := m.Snapshot()
	fmt.Println(s.Open, "open,", s.Stuck, "stuck:", s.Rows[0].Operation, s.Rows[0].Client)
	// Output: 1 open, 1 stuck: nfs3 GETATTR 192.0.2.2
}

// TestDamaged looks at everything while captures with random damage arrive.
func TestDamaged(t *testing.T) {
	for seed, name := range []string{"rocev2-nfs3-longcall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs41-recall.pcap"} {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		m := New(Options{Groups: true, Interval: 50 * time.Millisecond})
		for i, p := range packets(t, name) {
			b := append([]byte(nil), p.Data...)
			for range rng.IntN(4) {
				if len(b) > 54 {
					b[42+rng.IntN(len(b)-42)] ^= byte(1 << rng.IntN(8))
				}
			}
			if rng.IntN(20) == 0 {
				b = b[:rng.IntN(len(b))]
			}
			p.Data = b
			m.Packets([]capture.Packet{p})
			if i%10 != 0 {
				continue
			}
			s := m.Snapshot()
			if n := len(s.Rows); n > 0 {
				m.Watch(s.Rows[rng.IntN(n)].Serial, 40+rng.IntN(100), i%20 == 0)
				if d := m.Snapshot().Detail; d == nil || !d.Found {
					t.Errorf("%s, packet %d: a row of the latest snapshot is not found", name, i+1)
				}
			}
		}
		m.Flush(nil)
		m.Snapshot()
	}
}
