package holds

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Messages fails the test if a message that was captured whole and read to its
// end is not encoded to the bytes that it was decoded from.
func Messages(t T, v *rpc.View) {
	t.Helper()
	for _, m := range []*transaction.Message{&v.Tx.Call, &v.Tx.Reply} {
		header(t, m)
	}
	if v.Args() != nil && v.ArgsErr == nil && v.CallBody().Kind == oncrpc.BodyPlain {
		body(t, "arguments", v, v.Args(), v.Procedure.NewArgs, v.CallBody().Data, v.CallBody().Length, v.ArgsLeft)
	}
	if v.Result() != nil && v.ResultErr == nil && v.ReplyBody().Kind == oncrpc.BodyPlain {
		body(t, "results", v, v.Result(), v.Procedure.NewResult, v.ReplyBody().Data, v.ReplyBody().Length, v.ResultLeft)
	}
}

// header is the transport header of version 1: it has one form only.
func header(t T, m *transaction.Message) {
	t.Helper()
	h := &m.Header
	raw := m.Raw()
	if !m.Seen() || !m.Transport || m.Cut || h.Cut || h.Version != rpcrdma.Version1 || h.Length > len(raw) || h.Type > rpcrdma.TypeError {
		return
	}
	var again rpcrdma.Header
	if err := again.Decode(raw, m.SendBytes); err != nil || again.Cut {
		return // kept as far as it could be read
	}
	if b := again.Append(nil); !bytes.Equal(b, raw[:again.Length]) {
		t.Fatalf("the transport header %x is encoded as %x", raw[:again.Length], b)
	}
}

// body compares arguments or results with what they encode to. Opaque padding
// may be anything on the wire and is encoded as zeros: what differs has to be of
// the same length, and to stay the same from then on. The last item may lack some
// of its padding, or all.
func body(t T, what string, v *rpc.View, m xdr.Message, empty func() xdr.Message, data []byte, length, left int) {
	t.Helper()
	if len(data) != length || left > length {
		return
	}
	b := m.Append(nil)
	if n := m.EncodedSize(); n != len(b) {
		t.Fatalf("%s of %s: %d bytes are encoded as %d", what, v.ProcedureName(), n, len(b))
	}
	data = data[:length-left]
	if missing := len(b) - len(data); left == 0 && missing > 0 && missing == -len(data)&3 {
		data = append(data[:len(data):len(data)], make([]byte, missing)...)
	}
	if bytes.Equal(b, data) {
		return
	}
	if len(b) != len(data) {
		t.Fatalf("%s of %s: %d bytes\n%x\nare encoded as %d\n%x", what, v.ProcedureName(), len(data), data, len(b), b)
	}
	var r xdr.Reader
	r.Reset(b, len(b))
	again := empty()
	again.Decode(&r)
	if r.Failed() && !hasChunks(v) {
		t.Fatalf("%s of %s: %x are encoded as %x, which cannot be decoded: %v", what, v.ProcedureName(), data, b, r.Err())
	}
	if c := again.Append(nil); !r.Failed() && !bytes.Equal(b, c) {
		t.Fatalf("%s of %s: %x are encoded as %x, and then as %x", what, v.ProcedureName(), data, b, c)
	}
}

// hasChunks reports whether data travel outside of the messages, which then
// cannot be decoded without knowing so.
func hasChunks(v *rpc.View) bool {
	c, r := &v.Tx.Call.Header, &v.Tx.Reply.Header
	return len(c.Reads)+len(c.Writes)+len(r.Reads)+len(r.Writes) > 0
}
