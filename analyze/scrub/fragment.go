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
	h.payload, h.offset = within(h.data, f.Payload), int(f.FragmentOffset)
	if h.offset == 0 {
		h.keep(h.payload.from, min(h.payload.from+portsAndLength, h.payload.to))
	}
	h.fragment, h.datagram = true, fragmentOf{f.Src, f.Dst, f.FragmentID}
	if list := s.fragments[h.datagram]; len(list) < mostFragmentsKept {
		s.fragments[h.datagram] = append(list, number)
	}
}

// fill writes a message to the fragments of its datagram.
func (s *Scrubber) fill(of fragmentOf, was, is []byte) {
	for _, number := range s.fragments[of] {
		if s.window.Packet(number) == nil {
			continue
		}
		h := s.window.At(number)
		from := max(h.offset, udpHeader)
		to := min(h.offset+h.payload.len(), udpHeader+len(was))
		if from >= to {
			continue
		}
		at, n, from := h.payload.from+from-h.offset, to-from, from-udpHeader
		if bytes.Equal(h.data[at:at+n], was[from:from+n]) {
			copy(h.out[at:at+n], is[from:])
			h.filled = true
		}
	}
}

// forgetFragment removes a fragment that leaves the window.
func (s *Scrubber) forgetFragment(number uint64, h *held) {
	if !h.filled {
		s.stats.Fragments++
	}
	list := slices.DeleteFunc(s.fragments[h.datagram], func(n uint64) bool { return n == number })
	if len(list) == 0 {
		delete(s.fragments, h.datagram)
	} else {
		s.fragments[h.datagram] = list
	}
}
