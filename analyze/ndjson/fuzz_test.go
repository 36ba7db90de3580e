package ndjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// required are the keys that docs/schema.md says are always there.
var required = []string{
	"schema", "time", "xid", "connection", "connection_key", "fabric", "client", "server", "client_endpoint", "server_endpoint", "direction",
	"program", "version", "procedure", "status", "call_frame", "reply_frame", "call_type", "reply_type", "credits_requested",
	"credits_granted", "read_chunks", "write_chunks", "reply_chunk", "written_chunks", "written_reply_chunk", "rdma_reads",
	"rdma_read_bytes", "rdma_writes", "rdma_write_bytes", "call_bytes", "reply_bytes", "retransmits", "latency_ns", "state", "notes", "note_codes",
}

// phases are the keys of latency_ns; the first five sum to the sixth.
var phases = []string{"call_transfer", "argument_pull", "server", "result_push", "reply_transfer", "total", "pull_wait"}

// FuzzEncoder turns the transactions of changed captures into JSON: one line
// each, valid, with all keys, and phases that add up.
func FuzzEncoder(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte) {
		var e Encoder
		var b []byte
		n := 0
		var opt decode.Options
		opt.Transactions.Detach = len(program)%2 == 0 // connections are copies that do not change
		holds.Each(t, traffic.Apply(which, program), opt, func(v *rpc.View) {
			b = e.Append(b[:0], v)
			n++
			if n&7 == 1 { // comparing and reading all of them takes most of the time
				alike(t, &e, v)
			}
			object(t, b, n&7 == 1)
		})
	})
}

// object looks at the object of a transaction; at its keys, if all is set.
func object(t *testing.T, b []byte, all bool) {
	t.Helper()
	if !json.Valid(b) {
		t.Fatalf("%s", b)
	}
	if i := bytes.IndexFunc(b, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }); i >= 0 && b[i] != 0xef {
		t.Fatalf("%q at %d of %s", b[i], i, b)
	}
	if !all {
		return
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	for _, k := range required {
		if _, ok := o[k]; !ok {
			t.Fatalf("no key %s: %s", k, b)
		}
	}
	var latency map[string]int64
	if err := json.Unmarshal(o["latency_ns"], &latency); err != nil {
		t.Fatalf("%v: %s", err, o["latency_ns"])
	}
	if latency == nil {
		return
	}
	if _, divided := latency["server"]; !divided {
		if _, total := latency["total"]; !total || len(latency) > 2 {
			t.Fatalf("neither phases nor a total alone: %s", o["latency_ns"])
		}
		return
	}
	sum := int64(0)
	for i, k := range phases {
		n, ok := latency[k]
		if !ok {
			t.Fatalf("no key %s: %s", k, o["latency_ns"])
		}
		if i < 5 {
			sum += n
		}
	}
	if sum != latency["total"] {
		t.Fatalf("phases do not add up: %s", o["latency_ns"])
	}
}

// alike compares an object made of the template of its kind with one of which every attribute is a hole. It reports whether there is such
// a template.
func alike(t *testing.T, e *Encoder, v *rpc.View) bool {
	t.Helper()
	var all Encoder
	full := general().append(all.begin(), nil, v)
	if b := e.Append([]byte("before"), v); string(b) != "before"+string(full) {
		t.Fatalf("%s\nwant %s", b, full)
	}
	if !json.Valid(full) {
		t.Fatalf("%s", full)
	}
	return e.template(v) != general()
}

// TestTemplates writes the transactions of all captures in both ways.
func TestTemplates(t *testing.T) {
	known, all := 0, 0
	for i := range traffic.Count() {
		var e Encoder
		var opt decode.Options
		opt.Transactions.Detach = i%2 == 0
		holds.Each(t, traffic.Apply(uint8(i), nil), opt, func(v *rpc.View) {
			if p, ok := v.Tx.Phases(); ok && p.Divided() && v.Tx.Blame == nil {
				v.Tx.NewClean(&p)
			}
			if alike(t, &e, v) {
				known++
			}
			all++
		})
	}
	t.Logf("%d of %d transactions have a template", known, all)
	if known < all/2 {
		t.Error("too few")
	}
}

// TestParts looks for members of objects whose presence is not part of a kind.
func TestParts(t *testing.T) {
	for _, p := range general().pieces {
		if p.open == nil || p.field.Of == fields.OfParties {
			continue
		}
		for _, m := range append(p.members.pieces, p) {
			if partOf[m.field.Name] == 0 {
				t.Errorf("%s has no part", m.field.Name)
			}
		}
	}
}

// TestChanged writes the transactions of captures in both ways, and changes their numbers, chunks, files and losses.
func TestChanged(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 7))
	number := func() uint64 { return random.Uint64() >> (random.Uint32() % 64) }
	known, all := 0, 0
	long := bytes.Repeat([]byte("long-name"), 300)
	for _, name := range []string{
		"rocev2-nfs3-meta.pcap.zst", "rocev2-nfs3-bulk.pcap.zst", "rocev2-nfs42-basic.pcap.zst", "rocev2-nfs41-recall.pcap", "iwarp-nfs40-basic.pcap.zst",
		"kerberos/rocev2-nfs3-krb5i.pcap.zst",
	} {
		r, err := capture.Open([]string{filepath.Join("..", "..", "samples", name)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var e Encoder
		v := rpc.View{Names: &rpc.Names{}}
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			if tx.Procedure == nfs3.NFSPROC3_REMOVE && len(tx.Reply.Payload) > 28 { // of the same length, whether it fails or not
				binary.BigEndian.PutUint32(tx.Reply.Payload[24:], []uint32{0, 2, 13}[random.IntN(3)])
			}
			v.Set(tx)
			if f := v.File(); f != nil {
				holds.ChangeFile(random, f)
				if all%5 == 0 {
					f.To, f.Name, f.Result, f.Stable = nil, long[:random.IntN(len(long))], long[:random.IntN(200)], "UNSTABLE"
				}
			}
			if p, ok := tx.Phases(); ok && random.IntN(3) > 0 {
				tx.NewClean(&p)
				tx.Blame.Clean = random.IntN(2) == 0
				if random.IntN(10) == 0 {
					tx.Blame.Clean, tx.Blame.Shares[transaction.PhaseServer][rdma.Cause(1+random.IntN(rdma.NumCauses-1))] = false, 1
				}
			}
			change(random, tx, number)
			all++
			if alike(t, &e, &v) {
				known++
			}
			v.Learn()
		})
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	t.Logf("%d of %d transactions have a template", known, all)
	if known < all/2 {
		t.Error("too few")
	}
}

// change changes the numbers of some transactions.
func change(random *rand.Rand, tx *transaction.Transaction, number func() uint64) {
	if random.IntN(3) == 0 {
		return
	}
	tx.XID, tx.Call.Last.Number, tx.Reply.Last.Number = uint32(number()), 1+number()/2, 1+number()/2
	tx.Call.Bytes, tx.Reply.Bytes = number(), number()
	some := func(d uint64) time.Duration { return time.Duration(d>>1) * time.Duration(random.IntN(2)) }
	tx.Credits, tx.Slots = some(number()), some(number())
	if random.IntN(20) == 0 {
		tx.Credits = -tx.Credits
	}
	tx.Times.Ack.Time = tx.Reply.Last.Time + int64(number()>>30)
	tx.Reply.Invalidates, tx.Reply.Handle = random.IntN(2) == 0, uint32(number())
	if random.IntN(2) == 0 {
		tx.Reads, tx.Writes, tx.ReadBytes, tx.WriteBytes = random.IntN(3), random.IntN(3), number(), number()
	}
	segment := func() rpcrdma.Segment {
		return rpcrdma.Segment{Handle: uint32(number()), Length: uint32(number()), Offset: number()}
	}
	for _, m := range []*transaction.Message{&tx.Call, &tx.Reply} {
		if m.Transport && !m.Header.Plain() {
			h := &m.Header
			h.Credits, h.Reads, h.Writes, h.HasReply, h.Reply = uint32(random.IntN(9)), nil, nil, random.IntN(2) == 0, nil
			for range random.IntN(4) {
				h.Reads = append(h.Reads, rpcrdma.ReadSegment{Position: uint32(random.IntN(2) * 4000), Segment: segment()})
			}
			for range random.IntN(3) {
				c := rpcrdma.WriteChunk{}
				for range random.IntN(10) {
					c = append(c, segment())
				}
				h.Writes = append(h.Writes, c)
			}
			for range random.IntN(4) {
				h.Reply = append(h.Reply, segment())
			}
		}
	}
}

// TestEncoderAllocations writes each transaction of captures twice: the second time nothing is allocated, whatever it is.
func TestEncoderAllocations(t *testing.T) {
	for which := range traffic.Count() {
		var e Encoder
		var b []byte
		holds.Each(t, traffic.Apply(uint8(which), nil), decode.Options{}, func(v *rpc.View) {
			if len(v.Tx.Notes) > 0 {
				return // these are put together
			}
			b = e.Append(b[:0], v)
			if n := testing.AllocsPerRun(5, func() { b = e.Append(b[:0], v) }); n != 0 {
				t.Errorf("%v allocations: %s", n, b)
			}
		})
	}
}

// TestTime writes times that are a little later, a minute, and earlier.
func TestTime(t *testing.T) {
	var e Encoder
	at := time.Date(2026, 12, 31, 23, 58, 3, 5, time.UTC).UnixNano()
	for i := range 2000 {
		at += []int64{7e8, 1e9, 3, 59e9, -61e9, 60e9, 3600e9, 1e9 + 1}[i*i%8]
		if got, want := string(e.Time(nil, at)), time.Unix(0, at).UTC().Format("2006-01-02T15:04:05.000000000Z"); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// TestSettled writes transactions of connections that do not change, of which several are kept in the same place.
func TestSettled(t *testing.T) {
	var conns []*rdma.Connection
	var e Encoder
	known := 0
	var opt decode.Options
	opt.Transactions.Detach = true
	holds.Each(t, traffic.Apply(0, nil), opt, func(v *rpc.View) {
		c := v.Tx.Connection
		if conns == nil {
			for i := range 3 {
				x := *c
				x.ID += len(e.ends) / 2 * i
				x.Ends[0].QPN += uint32(i)
				x.Settled = i > 0
				conns = append(conns, &x)
			}
		}
		for _, i := range []int{0, 1, 0, 2, 1, 2, 2} {
			v.Tx.Connection = conns[i]
			if alike(t, &e, v) {
				known++
			}
		}
		conns[0].Ends[0].QPN++ // that of an unsettled one may
		v.Tx.Connection = c
	})
	if known == 0 {
		t.Error("none has a template")
	}
}
