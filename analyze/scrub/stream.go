package scrub

import (
	"bytes"
	"hash/maphash"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// streams finds the TCP segments in the window that carry a part of a stream, by its sequence numbers. A segment that was sent again is
// found beside the first one.
type streams struct {
	parts map[partKey][]segment
	spare [][]segment
}

// partKey is a part of a stream of partSize sequence numbers.
type partKey struct {
	flow uint64
	part uint32
}

const (
	partShift = 12
	partSize  = 1 << partShift
	// mostSegments is how many segments with bytes of one part are known; others stay zero.
	mostSegments = 128
)

// segment is the payload of a packet.
type segment struct {
	number   uint64
	sequence uint32
	size     uint32
}

var seed = maphash.MakeSeed()

type tuple struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

func (s *Scrubber) flowOf(f *link.Frame) uint64 {
	return maphash.Comparable(seed, tuple{f.Src, f.Dst, f.SrcPort, f.DstPort})
}

// flowFrom is what one side of a connection sends.
func flowFrom(c *rdma.Connection, from rdma.Side) uint64 {
	a, b := &c.Ends[from], &c.Ends[from.Other()]
	return maphash.Comparable(seed, tuple{a.Addr, b.Addr, a.Port, b.Port})
}

// each calls f for the parts that n bytes from a sequence number on lie in.
func each(sequence uint32, n int, f func(part uint32)) {
	if n <= 0 {
		return
	}
	last := (sequence + uint32(n-1)) >> partShift
	for p := sequence >> partShift; ; p = (p + 1) & (1<<(32-partShift) - 1) {
		f(p)
		if p == last {
			return
		}
	}
}

// add takes the payload of a packet. What of it has come before gets the same copy.
func (x *streams) add(s *Scrubber, number uint64, h *held) {
	n := h.payload.len()
	each(h.sequence, n, func(part uint32) {
		key := partKey{h.flow, part}
		list, known := x.parts[key]
		for i := range list {
			s.overlap(&list[i], part, h.sequence, h.data[h.payload.from:h.payload.to], h.out[h.payload.from:h.payload.to], true)
		}
		if len(list) >= mostSegments {
			return
		}
		if last := len(x.spare) - 1; !known && last >= 0 {
			list, x.spare = x.spare[last], x.spare[:last]
		}
		x.parts[key] = append(list, segment{number, h.sequence, uint32(n)})
	})
}

// forget removes a packet that leaves the window.
func (x *streams) forget(number uint64, h *held) {
	each(h.sequence, h.payload.len(), func(part uint32) {
		key := partKey{h.flow, part}
		list := x.parts[key]
		for i := range list {
			if list[i].number == number {
				list = append(list[:i], list[i+1:]...)
				break
			}
		}
		switch {
		case len(list) > 0:
			x.parts[key] = list
		case list != nil:
			delete(x.parts, key)
			if len(x.spare) < 1024 {
				x.spare = append(x.spare, list[:0])
			}
		}
	})
}

// overlap compares the segment g with the bytes was, which begin at a sequence number. Where they are the same in this part of the
// stream, their copies become the same: that of g, or, if from is set, the other one.
func (s *Scrubber) overlap(g *segment, part, sequence uint32, was, is []byte, from bool) {
	// Offsets count from the beginning of the part.
	origin := part << partShift
	a, b := int(int32(sequence-origin)), int(int32(g.sequence-origin))
	lo, hi := max(a, b, 0), min(a+len(was), b+int(g.size), partSize)
	if lo >= hi || s.window.Packet(g.number) == nil {
		return
	}
	h := s.window.At(g.number)
	at := h.payload.from + lo - b
	if to := at + hi - lo; at < h.payload.from || to > h.payload.to {
		return
	}
	here, there := is[lo-a:hi-a], h.out[at:at+hi-lo]
	if !bytes.Equal(was[lo-a:hi-a], h.data[at:at+hi-lo]) {
		return
	}
	if from {
		copy(here, there)
	} else {
		copy(there, here)
	}
}

// write puts is in the place of was, which begins at a sequence number.
func (s *Scrubber) write(flow uint64, sequence uint32, was, is []byte) {
	found := false
	each(sequence, len(was), func(part uint32) {
		list := s.streams.parts[partKey{flow, part}]
		for i := range list {
			found = true
			s.overlap(&list[i], part, sequence, was, is, false)
		}
	})
	if !found {
		s.stats.Late++
	}
}

// read appends n bytes of a stream as they were captured, fewer if the window lacks some.
func (s *Scrubber) read(b []byte, flow uint64, sequence uint32, n int) []byte {
	for n > 0 {
		got := 0
		list := s.streams.parts[partKey{flow, sequence >> partShift}]
		for i := range list {
			g := &list[i]
			skip := int(int32(sequence - g.sequence))
			if skip < 0 || skip >= int(g.size) || s.window.Packet(g.number) == nil {
				continue
			}
			h := s.window.At(g.number)
			if rest := h.data[h.payload.from:h.payload.to]; skip < len(rest) {
				got = min(len(rest)-skip, n)
				b = append(b, rest[skip:skip+got]...)
				break
			}
		}
		if got == 0 {
			return b
		}
		sequence += uint32(got)
		n -= got
	}
	return b
}

// aligned reports whether a segment begins where n bytes of a stream do, and one ends where they end.
func (s *Scrubber) aligned(flow uint64, sequence uint32, n int) bool {
	end := sequence + uint32(n)
	begins := func(g segment) bool { return g.sequence == sequence }
	ends := func(g segment) bool { return g.sequence+g.size == end }
	return slices.ContainsFunc(s.streams.parts[partKey{flow, sequence >> partShift}], begins) &&
		slices.ContainsFunc(s.streams.parts[partKey{flow, (end - 1) >> partShift}], ends)
}
