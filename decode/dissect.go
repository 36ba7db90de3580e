package decode

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// RoCEPort is the UDP destination port of RoCEv2 (IBTA annex A17).
const RoCEPort = roce.Port

// unit is what one packet shows without its context: the Lean of an ordinary packet, or where to find all of
// another one. It fills a cache line, since it is written on one processor and read on another.
type unit struct {
	lean roce.Lean
	full int32 // its place in dissection.full; -1 if lean says it all
}

// full is a packet that is not ordinary.
type full struct {
	first  int32 // of its InfiniBand packets in dissection.roce
	count  int32
	fabric rdma.Fabric // 0 if it is none of interest
	frame  link.Frame
}

// dissection is the stateless part of decoding a batch. It needs no order, so several can run at once.
type dissection struct {
	units    []unit
	full     []full
	roce     []roce.Packet
	splitter roce.Splitter
	lean     roce.LeanDecoder
	inFull   bool // nothing is ordinary: all headers are wanted
}

func (d *dissection) set(opt Options) {
	d.splitter.SkipICRC = opt.SkipICRC
	d.inFull = opt.Packet != nil && opt.Ordinary == nil || opt.SkipICRC
}

func (d *dissection) batch(b *capture.Batch) {
	n := len(b.Packets)
	if cap(d.units) < n {
		d.units = make([]unit, n)
	}
	d.units = d.units[:n]
	d.roce, d.full = d.roce[:0], d.full[:0]
	for i := range b.Packets {
		p := &b.Packets[i]
		u := &d.units[i]
		if p.Link == capture.LinkEthernet && !d.inFull && d.lean.Ethernet(p.Data, &u.lean) {
			u.full = -1
			continue
		}
		u.full = int32(len(d.full))
		if len(d.full) < cap(d.full) {
			d.full = d.full[:len(d.full)+1]
		} else {
			d.full = append(d.full, full{})
		}
		f := &d.full[u.full]
		link.Decode(p.Link, p.Data, p.Length, &f.frame)
		f.frame.Segment = p.Segment
		d.upper(f)
	}
}

// upper decodes the InfiniBand part of a frame, if it has one.
func (d *dissection) upper(u *full) {
	u.first, u.count = int32(len(d.roce)), 0
	switch u.frame.Proto {
	case link.UDP:
		if u.frame.DstPort != RoCEPort {
			u.fabric = rdma.UDP
			return
		}
		u.fabric = rdma.RoCEv2
	case link.TCP:
		u.fabric = rdma.TCP
		return
	case link.RoCEv1:
		u.fabric = rdma.RoCEv1
	case link.InfiniBand:
		u.fabric = rdma.InfiniBand
	default:
		u.fabric = 0
		return
	}
	s := &d.splitter
	s.Reset(&u.frame)
	for {
		if len(d.roce) < cap(d.roce) {
			d.roce = d.roce[:len(d.roce)+1]
		} else {
			d.roce = append(d.roce, roce.Packet{})
		}
		if !s.Next(&d.roce[len(d.roce)-1]) {
			d.roce = d.roce[:len(d.roce)-1]
			return
		}
		u.count++
	}
}
