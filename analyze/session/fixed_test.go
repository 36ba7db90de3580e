package session

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

// checkFixed compares what stands at fixed places with what is found word by word. It returns whether both messages have it there.
func checkFixed(t testing.TB, call, reply []byte) (opened, answered bool) {
	t.Helper()
	if o := openingOf(call); o != nil {
		q, minor, g, ok := peekCall(call, false)
		if g != bare || minor != o.minor() || ok != o.sequences() || ok && q != (sequence{session: *o.id(), slot: o.slot(), highest: o.highest()}) {
			t.Fatalf("%x: %+v, %d, %d, %t, not %x", call, q, minor, g, ok, *o)
		}
		opened = true
	}
	if a := answerOf(reply); a != nil {
		if q, ok := peekReply(reply, bare); !ok || q.target != a.target() {
			t.Fatalf("%x: %+v, %t, not %x", reply, q, ok, *a)
		}
		answered = true
	}
	return opened, answered
}

// TestFixed compares them for the messages of samples, and whatever is cut off from them.
func TestFixed(t *testing.T) {
	n := 0
	each(t, "../../samples/rocev2-nfs41-recall.pcap", func(v *rpc.View) {
		call, reply := v.Tx.Call.Payload, v.Tx.Reply.Payload
		if opened, answered := checkFixed(t, call, reply); opened && answered {
			n++
		}
		for i := range min(len(call), 160) {
			checkFixed(t, call[:i], nil)
		}
		for i := range min(len(reply), 100) {
			checkFixed(t, nil, reply[:i])
		}
	})
	if n < 40 {
		t.Errorf("%d transactions have a SEQUENCE at fixed places", n)
	}
}

// insert puts bytes, of which a word in front says how many, into a message.
func insert(b []byte, at int, n int) []byte {
	out := append([]byte(nil), b[:at]...)
	out = binary.BigEndian.AppendUint32(out, uint32(n))
	out = append(out, make([]byte, (n+3)&^3)...)
	return append(out, b[at+4:]...)
}

// TestFixedLengths: credentials and tags of any length are passed over.
func TestFixedLengths(t *testing.T) {
	m := newCompounds(1)
	m.odd = 1 << 30
	call, reply := m.next()
	for {
		if o := openingOf(call); o != nil && o.sequences() && answerOf(reply) != nil {
			break
		}
		call, reply = m.next()
	}
	for n := range 420 {
		checkBoth(t, n, insert(call, 28, n), insert(reply, 28, n))
		checkBoth(t, n, insert(call, 40, n), reply)
	}
	for _, n := range [...]uint32{1<<32 - 1, 1<<32 - 3, 1<<32 - 4, 1 << 31, longest + 1} {
		for _, at := range []int{28, 36, 40} {
			c, r := append([]byte(nil), call...), append([]byte(nil), reply...)
			binary.BigEndian.PutUint32(c[at:], n)
			binary.BigEndian.PutUint32(r[min(at, 28):], n)
			if opened, answered := checkFixed(t, c, r); opened || answered {
				t.Errorf("%#x at %d: %t, %t", n, at, opened, answered)
			}
		}
	}
	c := append([]byte(nil), call...)
	binary.BigEndian.PutUint64(c[36:], 1<<64-16) // what follows would be before
	if opened, _ := checkFixed(t, c, nil); opened {
		t.Error("a verifier and a tag that are too long")
	}
	copy(c[36:], call[36:])
	copy(c[48:], make([]byte, 4))
	checkFixed(t, c, nil) // no operations
	binary.BigEndian.PutUint32(call[24:], flavorGSS)
	if openingOf(call) != nil {
		t.Error("RPCSEC_GSS")
	}
	for _, at := range []int{4, 8, 16, 20, 36, 40} { // what kind of message, verifier, status, operation, its status
		r := append([]byte(nil), reply...)
		r[at+3] ^= 2
		if answerOf(r) != nil {
			t.Errorf("a reply that differs at %d", at)
		}
	}
	copy(reply[32:], make([]byte, 4))
	if answerOf(reply) != nil {
		t.Error("a reply without operations")
	}
}

func checkBoth(t *testing.T, n int, call, reply []byte) {
	t.Helper()
	if opened, answered := checkFixed(t, call, reply); !opened || !answered {
		t.Errorf("%d bytes: %t, %t", n, opened, answered)
	}
}
