package rocev2

import (
	"math"
	"net/netip"
	"sync"

	"github.com/rpcrdma/toolkit/replay/internal/link"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

const (
	// frameOverhead is what Ethernet, IP and UDP add to a packet on the wire:
	// preamble 8, header 14, frame check 4, gap 12, IPv4 20, UDP 8.
	frameOverhead = 66
	linkLimit     = 4 << 20 // bytes that may wait for their turn
)

// linkModel delays packets as a network with a delay and a bandwidth would.
type linkModel struct {
	line *link.Line[datagram]

	mu    sync.Mutex
	spare [][]byte
}

type datagram struct {
	packet []byte
	dst    netip.AddrPort
}

func newLinkModel(model verbs.Link, u *udp) *linkModel {
	l := &linkModel{}
	// send does not wait: it is also called with the answers to what was received.
	l.line = link.New(model, math.MaxInt, func(d datagram) error {
		u.sendOne(d.packet, d.dst) //nolint:errcheck // lost, as in a network
		l.mu.Lock()
		if len(l.spare) < 64 {
			l.spare = append(l.spare, d.packet)
		}
		l.mu.Unlock()
		return nil
	})
	return l
}

func (l *linkModel) close() {
	l.line.Close()
	<-l.line.Done()
}

// full reports that nothing more should be sent for now.
func (l *linkModel) full() bool { return l.line.InTransit() > linkLimit }

func (l *linkModel) send(packet []byte, dst netip.AddrPort) {
	var b []byte
	l.mu.Lock()
	if n := len(l.spare); n > 0 {
		b, l.spare = l.spare[n-1], l.spare[:n-1]
	}
	l.mu.Unlock()
	l.line.Put(datagram{append(b[:0], packet...), dst}, len(packet)+frameOverhead) //nolint:errcheck // closed: lost
}
