package decode

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// RoCEPort is the UDP destination port of RoCEv2 (IBTA annex A17).
const RoCEPort = roce.Port

// full is a packet that is not on the fast path.
type full struct {
	first  int32 // of its InfiniBand packets in dissection.roce
	count  int32
	fabric rdma.Fabric // 0 if it is of no interest
	// fast says that unit holds what frame does not, and that there are no InfiniBand packets. unit is an array because
	// FastDecoder fills lists.
	fast  bool
	unit  [1]roce.Unit
	frame link.Frame
}

// in returns the InfiniBand packets of the frame, out of those of its dissection.
func (u *full) in(list []roce.Packet) []roce.Packet {
	if u.fast {
		return nil
	}
	return list[u.first : u.first+u.count]
}

// dissection is the stateless part of decoding a batch. It needs no order, so several can run at once.
type dissection struct {
	done     int         // packets of the batch that have been dissected
	units    []roce.Unit // of the last of them
	full     []full
	roce     []roce.Packet
	splitter roce.Splitter
	fast     roce.FastDecoder
	seeker   roce.Seeker
	inFull   bool // nothing goes the fast path: all headers are wanted
	inner    bool // what is in tunnels may go the fast path
}

func (d *dissection) set(opt *Options, o *Observer) {
	d.splitter.SkipICRC = opt.SkipICRC
	d.inFull = o.Packet != nil && o.Headers == nil || opt.SkipICRC
	d.inner = o.Packet == nil && !opt.SkipICRC
}

// batch dissects a batch.
func (d *dissection) batch(b *capture.Batch) {
	d.begin()
	d.more(b, len(b.Packets))
}

// begin prepares for a batch, of which nothing is dissected yet.
func (d *dissection) begin() { d.done, d.roce, d.full = 0, d.roce[:0], d.full[:0] }

// more dissects the next packets of a batch, at most n. The units are theirs then.
func (d *dissection) more(b *capture.Batch, n int) {
	packets := b.Packets[d.done:]
	packets = packets[:min(n, len(packets))]
	d.done += len(packets)
	if cap(d.units) < len(packets) {
		d.units = make([]roce.Unit, len(packets))
	}
	d.units = d.units[:len(packets)]
	for i := 0; i < len(packets); i++ {
		if !d.inFull {
			if i += d.fast.Decode(packets[i:], d.units[i:]); i == len(packets) {
				return
			}
		}
		p, u := &packets[i], &d.units[i]
		u.Full = int32(len(d.full))
		if len(d.full) < cap(d.full) {
			d.full = d.full[:len(d.full)+1]
		} else {
			d.full = append(d.full, full{})
		}
		f := &d.full[u.Full]
		link.Decode(p.Link, p.Data, p.Length, &f.frame)
		f.frame.Segment = p.Segment
		d.unwrap(&f.frame)
		if f.fast = d.inner && d.fast.Inner(p, &f.frame, &f.unit); !f.fast {
			d.upper(f)
		}
	}
}

// unwrap looks for RoCEv2 in a frame that is not decoded, or that carries UDP of no known kind.
func (d *dissection) unwrap(f *link.Frame) {
	if d.splitter.SkipICRC {
		return
	}
	if at, ok := d.seeker.Seek(f); ok {
		f.Unwrap(at)
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
