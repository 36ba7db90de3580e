package xdrtest

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Redacts is RedactsAsDecoded, and fails if the copy tells an opaque or a text of the message.
func Redacts(t testing.TB, fresh func() xdr.Message, b []byte, full int) {
	t.Helper()
	if m, out := RedactsAsDecoded(t, fresh, b, full); out != nil {
		m.Walk(&leaks{t: t, message: b, out: out, of: m})
	}
}

// RedactsAsDecoded fails if the copy of a message that can be decoded cannot be decoded to the same end. It returns the message and the
// copy. b is the message, or the part of it that was captured.
func RedactsAsDecoded(t testing.TB, fresh func() xdr.Message, b []byte, full int) (xdr.Message, []byte) {
	t.Helper()
	m := fresh()
	s, ok := m.(xdr.Redactable)
	if !ok {
		t.Fatalf("%T cannot be redacted", m)
	}
	r := decode(m, b, full)
	cut := r.Cut()
	if r.Failed() && !cut {
		return m, nil
	}
	out := make([]byte, len(b))
	x := xdr.Redactor{Replace: func(_ xdr.Class, dst, _ []byte) {
		for i := range dst {
			dst[i] = '.'
		}
	}}
	x.ResetTo(out, b, full)
	s.Redact(&x)
	if x.Failed() != r.Failed() || !cut && x.Offset() != r.Offset() {
		t.Fatalf("%T: redacted to %d, decoded to %d: %v, %v\n% x", m, x.Offset(), r.Offset(), x.Err(), r.Err(), b)
	}
	if again := decode(fresh(), out, full); again.Failed() != r.Failed() || !cut && again.Offset() != r.Offset() {
		t.Fatalf("%T: the copy is decoded to %d, the message to %d: %v\n% x\n% x", m, again.Offset(), r.Offset(), again.Err(), b, out)
	}
	return m, out
}

// leaks is a Visitor that looks for the opaques of a message in its copy.
type leaks struct {
	Recorder
	t            testing.TB
	message, out []byte
	of           xdr.Message
}

// leastLeak is how long an opaque is that is not a number of the copy by chance.
const leastLeak = 6

func (l *leaks) look(name string, v []byte) {
	if len(v) < leastLeak || bytes.Count(v, v[:1]) == len(v) || !within(l.message, v) {
		return
	}
	if i := bytes.Index(l.out, v); i >= 0 {
		l.t.Fatalf("%T: the copy holds %s, %x, at offset %d\n% x", l.of, name, v, i, l.out)
	}
}

// within reports whether v is a part of b, not a copy.
func within(b, v []byte) bool {
	at, from := uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return at >= from && at < from+uintptr(len(b))
}

// Bytes implements xdr.Visitor.
func (l *leaks) Bytes(name string, v []byte) { l.look(name, v) }

// String implements xdr.Visitor.
func (l *leaks) String(name string, v []byte) { l.look(name, v) }

// Data implements xdr.Visitor.
func (l *leaks) Data(name string, d xdr.Data) { l.look(name, d.Inline) }
