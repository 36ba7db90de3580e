package decode

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/link"
)

// sort divides the packets of a batch among the groups. What it does is done in the order of the capture.
func (d *Decoder) sort(j *grouped) {
	if j.last = j.err != nil || d.stop.Load(); j.last {
		j.batch.Packets = j.batch.Packets[:0]
		j.end = d.stats.Last
	}
	j.first = d.stats.Last.Number + 1
	j.n = d.groups.count
	d.groups.count++
	clear(j.placed)
	j.placed = j.placed[:0]
	for i := range j.packets {
		j.packets[i] = j.packets[i][:0]
	}
	packets := j.batch.Packets
	j.groups = slices.Grow(j.groups[:0], len(packets))[:len(packets)]
	bytes := uint64(0)
	for i := 0; i < len(packets); i++ {
		first := i
		if d.tunnels.seen {
			j.groups[i] = d.sortOne(j, i)
		} else if i += d.groups.fast.Groups(packets[i:], j.groups[i:]); i < len(packets) {
			j.groups[i] = d.sortOne(j, i)
		}
		for k := first; k <= i && k < len(packets); k++ {
			bytes += uint64(packets[k].Length)
			if n := j.groups[k]; n > 0 {
				list := &j.packets[(n-1)%maxGroups]
				*list = append(*list, int32(k))
			}
		}
	}
	d.stats.saw(packets, bytes)
	d.memory.budget.Enforce()
}

// sortOne finds the group of a packet, from 1. It returns 0 if it has none: a fragment, until all have come.
func (d *Decoder) sortOne(j *grouped, i int) uint16 {
	p := &j.batch.Packets[i]
	q := d.groups.fast.RouteOf(p)
	if q == nil {
		return d.sortFull(j, i)
	}
	if q.Group == 0 {
		q.Group = d.groups.group(q.Src, q.Dst)
	}
	if d.tunnels.seen {
		tap, tenant := d.tunnels.bare(p)
		j.place(i, placement{tap: tap, tenant: tenant})
	}
	return q.Group
}

// sortFull is sortOne for a packet that needs more than a look at its headers.
func (d *Decoder) sortFull(j *grouped, i int) uint16 {
	p := &j.batch.Packets[i]
	f := &d.groups.full.frame
	link.Decode(p.Link, p.Data, p.Length, f)
	f.Segment = p.Segment
	if d.opt.Clock == ClockERSPAN {
		p.Time = d.clock.adjust(f, p.Time)
	}
	if len(f.Tunnels) > 0 {
		d.senders.note(p, f.Tunnels, 0)
		if !d.tunnels.seen {
			d.tunnels.begin(j.batch.Packets[:i])
		}
	}
	var x placement
	if f.Proto == link.Fragment {
		if f = d.defragment(p, &d.groups.full); f == nil {
			return 0
		}
		x.whole = newWhole(f)
	}
	if x.tap, x.tenant = d.place(p, f); x.whole != nil || x.tap != p.Tap || x.tenant != 0 {
		j.place(i, x)
	}
	switch f.Proto {
	case link.UDP, link.TCP, link.RoCEv1, link.InfiniBand:
		return d.groups.group(f.Src, f.Dst)
	}
	return 1
}
