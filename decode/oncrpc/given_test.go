package oncrpc

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestRecordParserGiven puts something between records that is none. It is counted, with its place, if a record ends before it.
func TestRecordParserGiven(t *testing.T) {
	rec := func(xid uint32) []byte { return AppendRecord(nil, call(xid, 12)) } // 56 bytes
	long := func(n uint32) []byte { return append(xdr.AppendUint32(nil, n), call(9, 12)...) }
	for _, c := range []struct {
		name string
		odd  []byte // in a segment of its own, which is packet 3
		want rdma.Given
	}{
		{"nothing", nil, rdma.Given{}},
		{"empty record", []byte{0x80, 0, 0, 0}, rdma.Given{Count: 1, Bytes: 4, First: 3, Offset: 112}},
		{"2 GiB", long(0xffffffff), rdma.Given{Count: 1, Bytes: 56, First: 3, Offset: 112}},
		{"no message", append(xdr.AppendUint32(nil, 0x80000020), bytes.Repeat([]byte{9}, 32)...), rdma.Given{Count: 1, Bytes: 36, First: 3, Offset: 112}},
		{"too short", []byte{0x80, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8}, rdma.Given{Count: 1, Bytes: 12, First: 3, Offset: 112}},
		{"too short, with an empty fragment", []byte{0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0, 0, 0}, rdma.Given{Count: 1, Bytes: 16, First: 3, Offset: 112}},
		{"two of them", append(long(0xffffffff), long(0xffffffff)...), rdma.Given{Count: 1, Bytes: 112, First: 3, Offset: 112}},
	} {
		var list []got
		p := RecordParser{Deliver: collect(&list)}
		n := 0
		for _, b := range [][]byte{rec(1), rec(2), c.odd, rec(3), rec(4)} {
			n++
			p.Data(b, ref(n))
		}
		p.End()
		if p.Given != c.want || p.Sealed.Count != 0 {
			t.Errorf("%s: %+v, want %+v", c.name, p.Given, c.want)
		}
		if len(list) != 4 {
			t.Errorf("%s: %d records", c.name, len(list))
		}

		// Behind a gap, where a record starts is a guess.
		p = RecordParser{Deliver: func(*Record) {}}
		p.Data(rec(1), ref(1))
		p.Skip(100, ref(2))
		p.Data(c.odd, ref(3))
		p.Data(rec(3), ref(4))
		if p.Given.Count != 0 {
			t.Errorf("%s: behind a gap %+v", c.name, p.Given)
		}
	}
}

// TestRecordParserSealed has TLS behind the call that asks for it.
func TestRecordParserSealed(t *testing.T) {
	hello := append([]byte{22, 3, 1, 0, 100}, bytes.Repeat([]byte{7}, 100)...)
	app := append([]byte{23, 3, 3, 0, 60}, AppendRecord(nil, call(5, 12))...) // must not be looked through
	for _, split := range []int{0, 1, 4, 5, 20} {
		var list []got
		p := RecordParser{Deliver: collect(&list)}
		p.Data(AppendRecord(nil, call(1, 12)), ref(1))
		p.Data(hello[:split], ref(2))
		p.Data(hello[split:], ref(3))
		p.Skip(10, ref(4))
		p.Data(app, ref(5))
		p.End()
		first := uint64(3)
		if split > 0 {
			first = 2
		}
		if want := (rdma.Given{Count: 1, Bytes: uint64(len(hello) + len(app)), First: first, Offset: 56}); p.Sealed != want || p.Given.Count != 0 || len(list) != 1 {
			t.Errorf("split at %d: %+v and %+v, %d records", split, p.Sealed, p.Given, len(list))
		}
	}
	// A record in place of the first bytes of TLS is none.
	for _, m := range [][markSize]byte{{19, 3, 1, 0}, {24, 3, 1, 0}, {22, 2, 1, 0}, {22, 3, 5, 0}, {22, 3, 1, 0x42}} {
		if startsTLS(m) {
			t.Errorf("%v", m)
		}
	}
}

// TestRecordParserEnd ends a stream within a record: what came of it is delivered, as one whose end is missing.
func TestRecordParserEnd(t *testing.T) {
	msg := call(2, 100)
	for _, c := range []struct {
		name   string
		record []byte
		cuts   bool // no cut of the message alone: the mark says how long it is
	}{
		{"one fragment", AppendRecord(nil, msg), true},
		{"fragments", fragments(msg, 60), false},
	} {
		for n := range c.record {
			var list []got
			p := RecordParser{Deliver: collect(&list)}
			p.Data(AppendRecord(nil, call(1, 0)), ref(1))
			p.Data(c.record[:n], ref(2))
			p.End()
			p.End() // once more: nothing
			if p.Given.Count != 0 {
				t.Fatalf("%s, %d bytes: %+v", c.name, n, p.Given)
			}
			if n < markSize+minPlausible {
				if len(list) != 1 {
					t.Fatalf("%s, %d bytes: %d records", c.name, n, len(list))
				}
				continue
			}
			if len(list) != 2 {
				t.Fatalf("%s, %d bytes: %d records", c.name, n, len(list))
			}
			r := list[1]
			if !bytes.HasPrefix(msg, r.data) || r.end != 44+uint64(n) || !r.broken && (r.length != len(msg) || len(r.data) == r.length) || c.cuts && r.broken {
				t.Fatalf("%s, %d bytes: %+v", c.name, n, r)
			}
		}
	}
}

// TestTCPTrackerGiven counts over both directions, and has messages whose end is missing count as cut.
func TestTCPTrackerGiven(t *testing.T) {
	w := newWire(t)
	c, r := AppendRecord(nil, call(1, 12)), AppendRecord(nil, reply(1, 0))
	w.send(0, 0, c, 0, 0)
	w.send(0, len(c), []byte{0x80, 0, 0, 0}, 0, 0)
	w.send(1, 0, r, len(c), 0)
	w.send(1, len(r), []byte{22, 3, 3, 0, 20}, len(c)+4, 0)
	w.send(0, len(c)+4, fragments(call(2, 100), 60)[:64], len(r), 0) // the end of its first fragment
	w.tracker.Close(ref(9))
	if g, s := w.tracker.Given(), w.tracker.Sealed(); g != (rdma.Given{Count: 1, Bytes: 4, First: 2, Offset: uint64(len(c))}) ||
		s != (rdma.Given{Count: 1, Bytes: 5, First: 4, Offset: uint64(len(r))}) {
		t.Errorf("%+v, %+v", g, s)
	}
	if want := "send 0: CALL 2, 60 of 61 bytes, frames 5 to 5, 1 packets, 0 again"; !slices.Contains(w.rec.lines, want) {
		t.Errorf("%q", w.rec.lines)
	}
}

// TestRecordParserNotGiven: what the capture lacks, and what only may be the start of a record, is no contradiction.
func TestRecordParserNotGiven(t *testing.T) {
	one := AppendRecord(nil, call(1, 12))
	var list []got
	start := func() *RecordParser {
		list = nil
		p := &RecordParser{Deliver: collect(&list)}
		p.Data(one, ref(1))
		return p
	}

	p := start()
	p.Skip(10, ref(2))
	p.Data([]byte{0x80, 0, 0, 60}, ref(3)) // perhaps a mark
	p.Data(bytes.Repeat([]byte{9}, 60), ref(4))
	if p.Given.Count != 0 {
		t.Errorf("a guess: %+v", p.Given)
	}

	p = start()
	p.Data([]byte{0x80, 0, 0, 60}, ref(2))
	p.Skip(60, ref(3))
	p.Data(one, ref(4))
	if p.Given.Count != 0 || len(list) != 2 {
		t.Errorf("a record of which only the mark is there: %+v, %d records", p.Given, len(list))
	}

	p = start()
	p.Data([]byte{0xff, 0xff, 0xff, 0xff}, ref(2))
	p.Skip(1000, ref(3))
	p.Data(bytes.Repeat([]byte{9}, 100), ref(4))
	if p.Given.Bytes != 4 {
		t.Errorf("bytes behind a gap: %+v", p.Given)
	}

	p = start()
	p.Data(fragments(call(2, 100), 60)[:64], ref(2))
	p.Data([]byte{22, 3, 1, 0}, ref(3))
	if p.Given.Count != 1 || p.Sealed.Count != 0 {
		t.Errorf("within a record: %+v, %+v", p.Given, p.Sealed)
	}

	p = start()
	p.Data(fragments(call(2, 100), 60)[:64], ref(2))
	p.Restart()
	if len(list) != 2 || !list[1].broken {
		t.Errorf("another stream: %+v", list)
	}
	p.Data(one, ref(3))
	if len(list) != 3 || list[2].start != 0 {
		t.Errorf("another stream: %+v", list)
	}
}
