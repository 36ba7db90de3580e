package nfs4

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/xdrtest"
)

// TestSkip passes over random values of every type, whole and cut, as Decode does.
func TestSkip(t *testing.T) {
	f := newFiller(3)
	for name, make := range messages() {
		if _, ok := make().(xdr.Skipper); !ok && strings.HasPrefix(name, "attribute ") {
			continue // not a type of the protocol by itself
		}
		for range 20 {
			m := make()
			if _, void := m.(xdr.Void); !void {
				f.fill(reflect.ValueOf(m).Elem())
			}
			b := m.Append(nil)
			xdrtest.SkipsAsDecoded(t, make, b, nil)
			xdrtest.SkipsAsDecoded(t, make, b[:rand.IntN(len(b)+1)], nil)
		}
	}
	for _, table := range []opTable{foreOps, cbOps} {
		for _, op := range table {
			if op.name != "" {
				sameType(t, op.newArgs(), op.skipArgs)
				sameType(t, op.newRes(), op.skipRes)
			}
		}
	}
}

// sameType fails if an operation is passed over as something else than what it is decoded into, or if that needs a receiver.
func sameType(t *testing.T, m xdr.Message, s xdr.Skipper) {
	t.Helper()
	if reflect.TypeOf(m) != reflect.TypeOf(s) {
		t.Errorf("%T is passed over as a %T", m, s)
	}
	var r xdr.Reader
	r.Reset(make([]byte, 400), 0)
	r.Skips(s, 0)
}

// outlineAsDecoded fails if the Outline of a COMPOUND is not that of the decoded one. The chunks are as fuzz has them.
func outlineAsDecoded(t *testing.T, b []byte, chunks []xdr.Reduced, fresh func() xdr.Message) {
	t.Helper()
	m := fresh()
	ops := operations(m)
	if ops == nil {
		return
	}
	var o Outline
	var minor uint32
	switch m.(type) {
	case *CompoundRes:
		o.Results = true
	case *CbCompoundArgs:
		o.Callback = true
	case *CbCompoundRes:
		o.Callback, o.Results = true, true
	}
	var r xdr.Reader
	r.Reset(b, 0)
	r.ReduceReply(chunks)
	end, ok := r.Skips(&o, 0)
	r.Reset(b, 0)
	r.ReduceReply(chunks)
	m.Decode(&r)
	switch m := m.(type) {
	case *CompoundArgs:
		minor = m.Minorversion
	case *CbCompoundArgs:
		minor = m.Minorversion
	}
	switch {
	case ok && (r.Failed() || end != r.Offset() || o.Minor != minor || len(o.Numbers) != len(ops.Ops)):
		t.Fatalf("%+v to %d, decoded %+v to %d: %v", o, end, m, r.Offset(), r.Err())
	case !ok && !r.Failed() && len(ops.Ops) <= maxOutline && (r.Remaining() > 0 || len(b)%4 == 0):
		t.Fatalf("%+v was decoded, but not passed over", m)
	}
	if !ok {
		return
	}
	for i, n := range o.Numbers {
		if n != ops.Ops[i].Number {
			t.Fatalf("operations %v, decoded %+v", o.Numbers, ops.Ops)
		}
		r.Reset(b, 0)
		r.ReduceReply(chunks)
		one := o.Decode(&r, i)
		if whole := ops.Ops[i].Body; r.Failed() || reflect.TypeOf(one) != reflect.TypeOf(whole) || !bytes.Equal(one.Append(nil), whole.Append(nil)) {
			t.Fatalf("operation %d: %+v, decoded with the others %+v: %v", i, one, whole, r.Err())
		}
		if code, _, has := ops.Ops[i].Status(); has && binary.BigEndian.Uint32(b[o.At(i):]) != code {
			t.Fatalf("operation %d has status %d at %d: %x", i, code, o.At(i), b)
		}
	}
}

// TestOutline compares outlines of real messages with what is decoded.
func TestOutline(t *testing.T) {
	for _, s := range seeds(t) {
		for _, chunks := range [][]xdr.Reduced{s.chunks, nil, {{Length: 8}}} {
			fresh := func() xdr.Message { return s.message() }
			outlineAsDecoded(t, s.data, chunks, fresh)
			outlineAsDecoded(t, s.data[:rand.IntN(len(s.data)+1)], chunks, fresh)
		}
	}
}
