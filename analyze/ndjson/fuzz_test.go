package ndjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/digits"
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
			alike(t, &e, v)
			object(t, b, n&7 == 1) // reading all of them takes most of the time
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

// alike compares the usual way with the way of all transactions, as if nothing had been lost.
func alike(t *testing.T, e *Encoder, v *rpc.View) bool {
	t.Helper()
	if p, ok := v.Tx.Phases(); ok && p.Divided() && v.Tx.Blame == nil {
		v.Tx.NewQuiet(&p)
	}
	var room [5000]byte // what was in it before does not matter
	for i := range room {
		room[i] = byte(i)
	}
	before := room[:v.Tx.XID%900]
	full := append(new(Encoder).any(nil, v), '}')
	check := func(how string, short []byte) {
		if !bytes.Equal(short[:len(before)], before) {
			t.Fatal("what was there before has changed")
		}
		if short = short[len(before):]; !bytes.Equal(short, full) {
			t.Errorf("%s: %s\nwant %s", how, short, full)
		}
	}
	if moving, ok := e.moving(before, v); ok {
		check("moving", moving)
	}
	short, ok := e.usual(before, v)
	if ok {
		check("usual", short)
	}
	return ok
}

// TestUsual writes the transactions of all captures in both ways.
func TestUsual(t *testing.T) {
	usual, all := 0, 0
	for i := range traffic.Count() {
		var e Encoder
		var opt decode.Options
		opt.Transactions.Detach = i%2 == 0
		holds.Each(t, traffic.Apply(uint8(i), nil), opt, func(v *rpc.View) {
			if alike(t, &e, v) {
				usual++
			}
			all++
		})
	}
	t.Logf("%d of %d transactions are usual", usual, all)
	if usual == 0 {
		t.Error("none")
	}
}

// TestUsualFiles writes the transactions of a capture in both ways, and changes what they are about, and their numbers.
func TestUsualFiles(t *testing.T) {
	r, err := capture.Open([]string{filepath.Join("..", "..", "samples", "rocev2-nfs3-meta.pcap.zst")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(2, 7))
	var e Encoder
	long := bytes.Repeat([]byte("long-name"), 300)
	upTo := func(n int) []byte { // or a little more, or far more
		if random.IntN(4) == 0 {
			n = len(long) - 9
		}
		return long[:random.IntN(n+9)]
	}
	usual, all, number := 0, 0, uint64(1)
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		if tx.Procedure == nfs3.NFSPROC3_REMOVE && len(tx.Reply.Payload) > 28 { // of the same length, whether it fails or not
			binary.BigEndian.PutUint32(tx.Reply.Payload[24:], []uint32{0, 2, 13}[random.IntN(3)])
		}
		v.Set(tx)
		if f := v.File(); f != nil {
			holds.ChangeFile(random, f)
			if all%5 == 0 {
				f.To, f.Name, f.Result, f.Stable = nil, upTo(maxName), upTo(maxResult), string(upTo(maxStable))
			}
		}
		if all%3 > 0 { // numbers of as many digits, or more
			if all%64 == 1 {
				number = random.Uint64() >> (8 + random.Uint32()%56)
			}
			number += 1 + random.Uint64N(5)
			tx.Call.Last.Number = number
			number += random.Uint64N(3)
			tx.Reply.Last.Number = number
			tx.XID = uint32(random.Uint64() >> (32 + random.Uint32()%32))
		}
		all++
		if alike(t, &e, &v) {
			usual++
		}
		v.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d transactions are usual", usual, all)
	if usual < all/2 {
		t.Error("too few")
	}
}

// TestMoving writes the transactions of captures in both ways, and changes their numbers, chunks and files.
func TestMoving(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 7))
	number := func() uint64 { return random.Uint64() >> (random.Uint32() % 64) }
	moving, all := 0, 0
	for _, name := range []string{"rocev2-nfs3-bulk.pcap.zst", "rocev2-nfs42-basic.pcap.zst", "rocev2-nfs41-recall.pcap", "iwarp-nfs40-basic.pcap.zst", "kerberos/rocev2-nfs3-krb5i.pcap.zst"} {
		r, err := capture.Open([]string{filepath.Join("..", "..", "samples", name)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var e Encoder
		v := rpc.View{Names: &rpc.Names{}}
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			v.Set(tx)
			if f := v.File(); f != nil {
				holds.ChangeFile(random, f)
			}
			if p, ok := tx.Phases(); ok && random.IntN(3) > 0 {
				tx.NewQuiet(&p)
				tx.Blame.Quiet = random.IntN(2) == 0
				if random.IntN(10) == 0 {
					tx.Blame.Quiet, tx.Blame.Shares[transaction.PhaseServer][rdma.Cause(1+random.IntN(rdma.NumCauses-1))] = false, 1
				}
			}
			change(random, tx, number)
			all++
			full := append(new(Encoder).any(nil, &v), '}')
			b, ok := e.moving([]byte("before"), &v)
			if ok {
				moving++
				if string(b) != "before"+string(full) {
					t.Fatalf("%s\nwant %s", b, full)
				}
			} else if string(b) != "before" {
				t.Fatalf("%s", b)
			}
			if !json.Valid(full) {
				t.Fatalf("%s", full)
			}
			v.Learn()
		})
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	t.Logf("%d of %d transactions", moving, all)
	if moving < all/3 {
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

// TestFrames writes the types of all pairs of headers, with the longest credits.
func TestFrames(t *testing.T) {
	var types []rpcrdma.Type
	for i := range rpcrdma.Type(1000) {
		if i.String() != "" {
			types = append(types, i)
		}
	}
	var e Encoder
	message := func(of rpcrdma.Type) *transaction.Message {
		m := &transaction.Message{Transport: true, Last: rdma.Ref{Number: 1}}
		m.Header.Type, m.Header.Credits, m.Header.Length = of, 1<<32-1, 100
		return m
	}
	none := &transaction.Message{Last: rdma.Ref{Number: 1}}
	for _, a := range types {
		for _, b := range types {
			for _, pair := range [][2]*transaction.Message{{message(a), message(b)}, {message(a), none}, {none, message(b)}, {none, none}} {
				k, want := e.frames(pair[0], pair[1]), framing(nil, pair[0], pair[1])
				if k == nil || string(k.text[:k.size]) != string(want) {
					t.Fatalf("%+v, want %s", k, want)
				}
			}
		}
	}
	if len(types) < 5 {
		t.Errorf("%d types", len(types))
	}
	cut, unknown := message(types[0]), message(1<<30)
	cut.Header.Cut, cut.Header.Length = true, 4
	for _, m := range []*transaction.Message{cut, unknown, message(1 << 31)} {
		if e.frames(m, none) != nil || e.frames(none, m) != nil {
			t.Errorf("%+v", m.Header)
		}
	}
}

// TestMovingRoom writes an object with as many segments as it may have, of the longest numbers, into room that is no larger than it asks for.
func TestMovingRoom(t *testing.T) {
	var e Encoder
	longest := 0
	var opt decode.Options
	holds.Each(t, traffic.Apply(1, nil), opt, func(v *rpc.View) {
		h := &v.Tx.Call.Header
		if h.Plain() {
			return
		}
		h.Reads, h.Writes, h.Reply, h.HasReply = nil, nil, nil, false
		for len(h.Reads) < 100 {
			h.Reads = append(h.Reads, rpcrdma.ReadSegment{Position: 1<<32 - 1 - uint32(len(h.Reads)), Segment: rpcrdma.Segment{Handle: 1<<32 - 1, Length: 1<<32 - 1, Offset: 1<<64 - 1}})
		}
		v.Tx.Times.LastRead = v.Tx.Call.Last // else it lacks them
		full := append(new(Encoder).any(nil, v), '}')
		b, ok := e.moving(make([]byte, 0), v)
		if !ok {
			return
		}
		if !bytes.Equal(b, full) {
			t.Fatalf("%s\nwant %s", b, full)
		}
		longest = max(longest, len(b))
	})
	if longest < 8000 {
		t.Errorf("%d bytes", longest)
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

// TestPlaced writes files of paths and handles of all lengths, and names in them, as file does.
func TestPlaced(t *testing.T) {
	long := bytes.Repeat([]byte("path/of/some-file.of.a length "), 10)
	kept := 0
	for _, size := range []int{1, 16, 20, 28, 32, 53, 54, 64} {
		for n := range 200 {
			p := &rpc.Place{Stamp: uint64(n + 1), Path: long[:n]}
			handle := long[len(long)-size:]
			var k placed
			if k.write(p, handle); k.handle == 0 {
				continue
			}
			kept++
			whole, named := append(digits.Hex(nil, handle), '"'), append(digits.Hex(nil, handle), `","name":"n1`...)
			named = append(named, inPath...)
			if n > 0 {
				whole = append(append(append(whole, ofPath...), p.Path...), '"')
				named = append(append(named, p.Path...), '/')
			}
			named = append(named, `n1"`...)
			var d [maxFile]byte
			if k.copy(&d); string(d[:k.whole]) != string(whole) {
				t.Fatalf("%d, %d: %s, want %s", size, n, d[:k.whole], whole)
			}
			if m := k.name(&d, []byte("n1")); string(d[:m]) != string(named) {
				t.Fatalf("%d, %d: %s, want %s", size, n, d[:m], named)
			}
		}
	}
	if kept < 700 {
		t.Errorf("%d are kept", kept)
	}
}

// TestPacket writes numbers around each power of ten, and each multiple of 10^8, where another one was.
func TestPacket(t *testing.T) {
	var numbers []uint64
	for p := uint64(1); p < 1e19; p *= 10 {
		numbers = append(numbers, p-1, p, p+1, 3*p, 7*p+5)
	}
	for i := uint64(1); i < 4; i++ {
		numbers = append(numbers, i*1e8-1, i*1e8, i*1e8+1)
	}
	fits := 0
	for _, was := range numbers {
		const front, behind = "front", ",behind,"
		text := front + strconv.FormatUint(was, 10)
		p := newPacket(was, len(text), binary.LittleEndian.Uint64([]byte(behind)))
		for _, number := range numbers {
			same := len(strconv.FormatUint(was, 10)) == len(strconv.FormatUint(number, 10)) && was/1e8 == number/1e8
			if p.has(number) != same {
				t.Fatalf("%d in place of %d: %t", number, was, !same)
			}
			if !same {
				continue
			}
			fits++
			var d [maxObject]byte
			copy(d[10:], text+behind)
			k := shape{asked: p, answered: p}
			k.put(&d, 10, number, number)
			if want := front + strconv.FormatUint(number, 10) + behind; string(d[10:10+len(want)]) != want {
				t.Fatalf("%d in place of %d: %q", number, was, d[10:10+len(want)])
			}
		}
	}
	if fits < len(numbers) {
		t.Errorf("%d fit", fits)
	}
}

// TestSettled writes transactions of connections that do not change, of which several are kept in the same place.
func TestSettled(t *testing.T) {
	var conns []*rdma.Connection
	var e Encoder
	usual := 0
	var opt decode.Options
	opt.Transactions.Detach = true
	holds.Each(t, traffic.Apply(0, nil), opt, func(v *rpc.View) {
		c := v.Tx.Connection
		if conns == nil {
			for i := range 3 {
				x := *c
				x.ID += len(e.shapes) / 2 * i
				x.Ends[0].QPN += uint32(i)
				x.Settled = i > 0
				conns = append(conns, &x)
			}
		}
		for _, i := range []int{0, 1, 0, 2, 1, 2, 2} {
			v.Tx.Connection = conns[i]
			if alike(t, &e, v) {
				usual++
			}
		}
		conns[0].Ends[0].QPN++ // that of an unsettled one may
		v.Tx.Connection = c
	})
	if usual == 0 {
		t.Error("none is usual")
	}
}
