package scrub

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/link"
)

// fragmentOf names the datagram that an IP packet is a fragment of.
type fragmentOf struct {
	src, dst netip.Addr
	id       uint32
}

// fragment is what a packet carries of a datagram.
type fragment struct {
	of     fragmentOf
	offset int  // of the packet's payload
	filled bool // it was copied
}

const (
	udpProtocol    = 17
	udpHeader      = 8
	portsAndLength = 6
	// mostFragmentsKept is how many fragments of a datagram are known; others stay zero.
	mostFragmentsKept = 128
)

// fragment copies the ports and the length of a UDP datagram in its first fragment. Its checksum is zero, as of one that has none.
func (s *Scrubber) fragment(number uint64, h *held, f *link.Frame) {
	if f.FragmentProto != udpProtocol || len(f.Payload) == 0 {
		s.stats.Fragments++
		return
	}
	h.payload = within(h.data, f.Payload)
	if f.FragmentOffset == 0 {
		h.keep(h.payload.from, min(h.payload.from+portsAndLength, h.payload.to))
	}
	of := fragmentOf{f.Src, f.Dst, f.FragmentID}
	h.fragment = &fragment{of: of, offset: int(f.FragmentOffset)}
	if list := s.fragments[of]; len(list) < mostFragmentsKept {
		s.fragments[of] = append(list, number)
	}
}

// fill writes a message to the fragments of its datagram.
func (s *Scrubber) fill(of fragmentOf, was, is []byte) {
	for _, number := range s.fragments[of] {
		if s.window.Packet(number) == nil {
			continue
		}
		h := s.window.At(number)
		offset := h.fragment.offset
		from := max(offset, udpHeader)
		to := min(offset+h.payload.len(), udpHeader+len(was))
		if from >= to {
			continue
		}
		at, n, from := h.payload.from+from-offset, to-from, from-udpHeader
		if bytes.Equal(h.data[at:at+n], was[from:from+n]) {
			copy(h.out[at:at+n], is[from:])
			h.fragment.filled = true
		}
	}
}

// forgetFragment removes a fragment that leaves the window.
func (s *Scrubber) forgetFragment(number uint64, h *held) {
	if !h.fragment.filled {
		s.stats.Fragments++
	}
	of := h.fragment.of
	list := slices.DeleteFunc(s.fragments[of], func(n uint64) bool { return n == number })
	if len(list) == 0 {
		delete(s.fragments, of)
	} else {
		s.fragments[of] = list
	}
}
