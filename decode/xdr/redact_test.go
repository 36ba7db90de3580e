package xdr

import (
	"bytes"
	"testing"
)

// replaceByX marks what has been replaced, by its class.
func replaceByX(c Class, dst, _ []byte) {
	for i := range dst {
		dst[i] = 'a' + byte(c)
	}
}

func TestRedactor(t *testing.T) {
	b := AppendUint32(nil, 7)
	b = AppendOpaque(b, []byte("name1"))
	b = AppendOpaque(b, []byte("data!"))
	b = AppendFixed(b, []byte("verifier"))
	b = AppendOpaque(b, AppendUint32(nil, 9))
	b = append(b, "rest"...)
	want := AppendUint32(nil, 7)
	want = AppendOpaque(want, []byte("bbbbb"))
	want = AppendOpaque(want, make([]byte, 5))
	want = AppendFixed(want, []byte("dddddddd"))
	want = AppendOpaque(want, AppendUint32(nil, 9))
	want = append(want, 0, 0, 0, 0)
	redact := func(x *Redactor) {
		x.Numbers(4)
		x.Text(Name, 0)
		x.Item(Secret, 0)
		x.Bytes(Handle, 8)
		x.Nested(func(x *Redactor) { x.Word() })
	}
	x := Redactor{Replace: replaceByX}
	out := make([]byte, len(b))
	x.ResetTo(out, b, len(b))
	if redact(&x); x.Failed() || !bytes.Equal(out, want) {
		t.Fatalf("%v\n% x\n% x", x.Err(), out, want)
	}
	for n := range b { // cut: what is there is as before, or zero
		out := make([]byte, n)
		x.ResetTo(out, b[:n], len(b))
		redact(&x)
		for i := range out {
			if out[i] != 0 && out[i] != want[i] {
				t.Fatalf("cut at %d: % x", n, out)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		clear(out)
		x.ResetTo(out, b, len(b))
		redact(&x)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRedactorNested: an opaque that is not what it ought to be stays zero.
func TestRedactorNested(t *testing.T) {
	b := AppendOpaque(nil, []byte("no number"))
	x := Redactor{Replace: replaceByX}
	out := make([]byte, len(b))
	x.ResetTo(out, b, len(b))
	x.Nested(func(x *Redactor) { x.Word() })
	if want := AppendOpaque(nil, make([]byte, 9)); x.Failed() || x.Remaining() != 0 || !bytes.Equal(out, want) {
		t.Fatalf("%v, % x", x.Err(), out)
	}
}
