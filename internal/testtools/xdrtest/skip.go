package xdrtest

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// SkipsAsDecoded fails if passing over a message and decoding it differ: what can be passed over is decoded without an
// error and ends at the same place, and what is decoded can be passed over, unless padding is missing at its end. The
// chunks are tried as those of a call and as those of a reply.
func SkipsAsDecoded(t testing.TB, fresh func() xdr.Message, b []byte, chunks []xdr.Reduced) {
	t.Helper()
	for _, reduce := range []func(*xdr.Reader, []xdr.Reduced){(*xdr.Reader).ReduceCall, (*xdr.Reader).ReduceReply} {
		m := fresh()
		s, ok := m.(xdr.Skipper)
		if !ok {
			t.Fatalf("%T cannot be passed over", m)
		}
		var r xdr.Reader
		r.Reset(b, len(b))
		reduce(&r, chunks)
		end, whole := r.Skips(s, 0)
		r.Reset(b, len(b))
		reduce(&r, chunks)
		m.Decode(&r)
		switch {
		case whole && (r.Failed() || end != r.Offset()):
			t.Fatalf("%T: passed over to %d, decoded to %d: %v\n% x", m, end, r.Offset(), r.Err(), b)
		case !whole && !r.Failed() && (r.Remaining() > 0 || len(b)%4 == 0):
			t.Fatalf("%T: not passed over, but decoded to %d of %d\n% x", m, r.Offset(), len(b), b)
		}
	}
}
