package rocev2

import (
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
	verbstap "github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// tap shows packets as they are on the wire: with IP and UDP headers.
type tap struct {
	to  verbs.Tap
	mu  sync.Mutex
	buf []byte
}

func (t *tap) on() bool { return t.to != nil }

// packet shows one packet, BTH through ICRC.
func (t *tap) packet(src, dst netip.AddrPort, id uint16, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = verbstap.AppendUDP(t.buf[:0], src, dst, id, true, b)
	t.to.Packet(time.Now(), t.buf)
}

// batch shows the packets of a batch, with the identifications that the kernel
// will give them.
func (t *tap) batch(b *batch, src, dst netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for i := range b.messages {
		m := &b.messages[i]
		for j := range m.segments {
			s := &b.segments[m.segment+j]
			t.buf = verbstap.AppendUDP(t.buf[:0], src, dst, uint16(j), true, b.parts[s.part:s.part+s.parts]...)
			t.to.Packet(now, t.buf)
		}
	}
}
