package decode

import (
	"slices"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
)

// placement is what the order of the capture tells of a packet.
type placement struct {
	known  bool // it tells more than the packet itself
	tap    uint16
	tenant uint64
	whole  *whole // the datagram that it completes, if it does
}

// whole is a datagram that was put together from fragments.
type whole struct{ full }

// place keeps what the order of the capture tells of packet i.
func (j *grouped) place(i int, x placement) {
	if len(j.placed) == 0 {
		n := len(j.batch.Packets)
		j.placed = slices.Grow(j.placed, n)[:n]
	}
	x.known = true
	j.placed[i] = x
}

// placement is what the order of the capture tells of packet i.
func (j *grouped) placement(p *capture.Packet, i int32) placement {
	if len(j.placed) > 0 && j.placed[i].known {
		return j.placed[i]
	}
	return placement{tap: p.Tap}
}

// newWhole keeps a copy of a datagram whose bytes are to be used for the next one.
func newWhole(f *link.Frame) *whole {
	w := &whole{full: full{frame: *f}}
	g := &w.frame
	g.Net, g.Transport, g.Payload = slices.Clone(f.Net), slices.Clone(f.Transport), slices.Clone(f.Payload)
	g.Tunnels = slices.Clone(f.Tunnels)
	return w
}
