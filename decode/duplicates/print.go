package duplicates

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/link"
)

// print is what the copies of an IP packet have in common.
type print struct {
	sum   uint64
	hosts uint64 // of the two hosts, in either order
	up    bool   // the direction between them
}

// printer makes prints. The zero value is ready for use.
type printer struct {
	frame link.Frame
	net   [64]byte
}

// Parts of a payload that are compared: headers, and the end, where a packet of RoCE has its ICRC.
const (
	headBytes = 64
	tailBytes = 32
)

// of leaves out what a switch or router changes: the link header with its tags, and DSCP, ECN, hop limit and checksum of the
// IP header (RFC 1812, section 5.3.1; RFC 3168, section 5). It includes the identification of IPv4, which distinguishes a retransmission
// from a copy. Packets of different mirrors, and bare and wrapped packets, have different prints, since they have capture
// points of their own anyway. ok is false if the packet is not IP, or damaged.
func (s *printer) of(p *capture.Packet) (x print, ok bool) {
	f := &s.frame
	link.Decode(p.Link, p.Data, p.Length, f)
	net := append(s.net[:0], f.Net[:min(len(f.Net), len(s.net))]...)
	switch {
	case len(net) >= 20 && net[0]>>4 == 4:
		net[1], net[8], net[10], net[11] = 0, 0, 0, 0
	case len(net) >= 40 && net[0]>>4 == 6:
		net[0], net[1], net[7] = 0, net[1]&0x0f, 0
	default:
		return x, false
	}
	sum := f.Tenant()
	if o := f.Outermost(); o != nil {
		sum += uint64(o.Type) << 56
	}
	if m := f.Mirror(); m != nil {
		from := m.Src.As16()
		sum = wire.Sum64(sum+uint64(m.ID), from[:])
	}
	sum = wire.Sum64(sum, net)
	sum = wire.Sum64(sum, f.Transport)
	n := len(f.Payload)
	sum = wire.Sum64(sum, f.Payload[:min(headBytes, n)])
	if n > headBytes {
		sum = wire.Sum64(sum, f.Payload[max(headBytes, n-tailBytes):])
	}
	from, to := f.Src.As16(), f.Dst.As16()
	a, z := wire.Sum64(0, from[:]), wire.Sum64(0, to[:])
	return print{sum: sum, hosts: a ^ z, up: a < z}, true
}
