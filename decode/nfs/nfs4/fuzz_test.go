package nfs4

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// fuzz decodes b as the messages that fresh makes, and checks that what results can be encoded, sized,
// decoded again and shown.
func fuzz(t *testing.T, b []byte, chunks []xdr.Reduced, cut int, fresh func() xdr.Message) {
	outlineAsDecoded(t, b, chunks, fresh)
	m := fresh()
	var r xdr.Reader
	r.Reset(b, len(b)+cut)
	r.ReduceReply(chunks)
	m.Decode(&r)
	ops := operations(m)
	if ops != nil && len(ops.Ops)*4 > len(b) {
		t.Fatalf("%d operations from %d bytes", len(ops.Ops), len(b))
	}
	var c count
	m.Walk(&c)
	if r.Failed() {
		if ops != nil && !ops.Incomplete && ops.Count > uint32(len(ops.Ops)) {
			t.Fatalf("%v, but not incomplete", r.Err())
		}
		if ops == nil {
			return
		}
	}
	once := m.Append(nil)
	if len(once) != m.EncodedSize() {
		t.Fatalf("size %d, encoded %d bytes", m.EncodedSize(), len(once))
	}
	if r.Failed() || chunks != nil {
		return
	}
	// Padding and booleans may have other values in b, but never after encoding.
	again := fresh()
	r.Reset(once, len(once))
	again.Decode(&r)
	if r.Err() != nil || r.Remaining() != 0 {
		t.Fatalf("%v, %d bytes left", r.Err(), r.Remaining())
	}
	if twice := again.Append(nil); !bytes.Equal(twice, once) {
		t.Fatalf("\n got %x\nwant %x", twice, once)
	}
}

func fuzzCompound(f *testing.F, kind string, fresh func() xdr.Message) {
	for i, s := range seeds(f) {
		if s.kind == kind {
			f.Add(s.data, uint8(i%3), uint16(0))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, chunks uint8, cut uint16) {
		var reduced []xdr.Reduced
		for range chunks % 4 {
			reduced = append(reduced, xdr.Reduced{Length: 8})
		}
		fuzz(t, b, reduced, int(cut), fresh)
	})
}

func FuzzCompoundArgs(f *testing.F)   { fuzzCompound(f, "call", newMessage[CompoundArgs]) }
func FuzzCompoundRes(f *testing.F)    { fuzzCompound(f, "reply", newMessage[CompoundRes]) }
func FuzzCbCompoundArgs(f *testing.F) { fuzzCompound(f, "cbcall", newMessage[CbCompoundArgs]) }
func FuzzCbCompoundRes(f *testing.F)  { fuzzCompound(f, "cbreply", newMessage[CbCompoundRes]) }

func FuzzFattr(f *testing.F) {
	fill := newFiller(5)
	for range 40 {
		fa := fill.attrs().Fattr4()
		f.Add(fa.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzz(t, b, nil, 0, newMessage[Fattr4])
		var fa Fattr4
		var r xdr.Reader
		r.Reset(b, len(b))
		if fa.Decode(&r); r.Failed() {
			return
		}
		// Whatever the values are, the decoded ones and the bytes that were kept reproduce them.
		a, _ := fa.Attrs()
		vals := a.AppendValues(nil)
		if len(vals) != a.ValuesSize() {
			t.Fatalf("size %d, encoded %d bytes", a.ValuesSize(), len(vals))
		}
		back := Fattr4{fa.Attrmask, vals}
		a2, _ := back.Attrs()
		if again := a2.AppendValues(nil); !bytes.Equal(again, vals) {
			t.Fatalf("\n got %x\nwant %x", again, vals)
		}
	})
}
