package decode

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
)

const (
	// maxSenders bounds the senders of tunnels whose sequence numbers are followed.
	maxSenders = 256
	// sequenceWindow is how many sequence numbers behind the highest one a packet may come late, or again.
	sequenceWindow = 1024
	// farthestGap is the largest step that is taken for missing packets, and not for a sender that has begun anew.
	farthestGap = 1 << 20
)

// Sequences is what the sequence numbers of mirrors and tunnels say (GRE: RFC 2890, section 2.2; ERSPAN types II and III), of all senders
// whose numbers count their packets.
type Sequences struct {
	ERSPAN, GRE bool   // the types of those that lack packets
	Packets     uint64 // of these senders, in the capture
	// Missing counts the numbers that no packet of the capture has, between the first and the last of each sender. The packets were lost by the
	// mirror or behind it, or a filter left them out; that they are missing here says nothing about the network that is mirrored.
	Missing uint64
	First   uint64 // number of the packet behind the first of those
}

// Since takes off what had been counted before. The first stays the first of all.
func (s Sequences) Since(o Sequences) Sequences {
	if s.Missing <= o.Missing {
		return Sequences{}
	}
	s.Missing -= o.Missing
	s.Packets -= min(o.Packets, s.Packets)
	return s
}

// sequences follows the sequence numbers of tunnels.
type sequences struct {
	senders map[tunnelSender]*sequence
	recent  [2]recentSender // of the last packets, so that most need no map
}

type recentSender struct {
	tunnelSender
	of *sequence // nil: none
}

// tunnelSender is whoever counts its packets.
type tunnelSender struct {
	tap      uint16
	depth    uint8 // of tunnels within tunnels
	tunnel   link.TunnelType
	version  uint8
	id       uint32
	src, dst netip.Addr
}

// sequence is how the numbers of a sender went on.
type sequence struct {
	base, last uint32 // the lowest and the highest number, since the sender began anew
	packets    uint64
	missing    uint64
	odd        uint64 // packets that came late or again, or began anew
	first      uint64
	seen       [sequenceWindow / 64]uint64 // by the low bits of a number
	anew       uint32                      // the number that would confirm that the sender has begun anew
	doubted    bool                        // the last packet's number was far from all others
}

// note takes the sequence numbers of the tunnels of a packet, without the first ones: those of its fragments.
func (s *sequences) note(p *capture.Packet, tunnels []link.Tunnel, without int) {
	for i := without; i < len(tunnels); i++ {
		t := &tunnels[i]
		if !t.Sequenced {
			continue
		}
		q := s.recent[0].of
		if !s.recent[0].is(p.Tap, i, t) {
			if q = s.recent[1].of; !s.recent[1].is(p.Tap, i, t) {
				q = s.find(tunnelSender{p.Tap, uint8(i), t.Type, t.Version, t.ID, t.Src, t.Dst})
			}
		}
		if q != nil {
			q.next(t.Sequence, p.Number)
		}
	}
}

// is reports whether r is the sender of tunnel i of a packet.
func (r *recentSender) is(tap uint16, i int, t *link.Tunnel) bool {
	return r.of != nil && r.id == t.ID && r.src == t.Src && r.dst == t.Dst && r.tap == tap && r.depth == uint8(i) && r.tunnel == t.Type && r.version == t.Version
}

// find returns what is known of a sender. It returns nil if there are too many.
func (s *sequences) find(k tunnelSender) *sequence {
	q := s.senders[k]
	if q == nil {
		if len(s.senders) >= maxSenders {
			return nil
		}
		if s.senders == nil {
			s.senders = make(map[tunnelSender]*sequence)
		}
		q = new(sequence)
		s.senders[k] = q
	}
	s.recent[1], s.recent[0] = s.recent[0], recentSender{k, q}
	return q
}

func (q *sequence) begin(n uint32) {
	q.base, q.last, q.doubted = n, n, false
	q.seen = [sequenceWindow / 64]uint64{}
	q.mark(n)
	q.packets++
}

func (q *sequence) mark(n uint32)     { q.seen[n/64%(sequenceWindow/64)] |= 1 << (n % 64) }
func (q *sequence) clear(n uint32)    { q.seen[n/64%(sequenceWindow/64)] &^= 1 << (n % 64) }
func (q *sequence) has(n uint32) bool { return q.seen[n/64%(sequenceWindow/64)]&(1<<(n%64)) != 0 }

// next takes the number of the next packet, which is packet number at of the capture.
func (q *sequence) next(n uint32, at uint64) {
	if q.packets == 0 {
		q.begin(n)
		return
	}
	step := int32(n - q.last)
	if step > farthestGap || step <= -sequenceWindow {
		q.odd++
		if q.doubted && n == q.anew {
			q.begin(n)
			return
		}
		// One such packet may be very late. Two in a row are a new beginning (as RFC 3550, appendix A.1, has it).
		q.doubted, q.anew = true, n+1
		q.packets++
		return
	}
	q.doubted = false
	switch {
	case step > 0:
		for k := uint32(max(1, step-sequenceWindow+1)); k < uint32(step); k++ {
			q.clear(q.last + k)
		}
		if step > 1 {
			if q.missing == 0 {
				q.first = at
			}
			q.missing += uint64(step - 1)
		}
		q.last = n
	case int32(n-q.base) < 0: // sent before the first one that came
		q.odd++
		for k := n + 1; k != q.base; k++ {
			q.clear(k)
		}
		q.missing += uint64(q.base - n - 1)
		q.base = n
	default:
		q.odd++
		if !q.has(n) { // late
			q.missing--
		}
	}
	q.mark(n)
	q.packets++
}

// counts reports whether the numbers count packets. Some switches send a constant, and some a number of each of their parts, and then most
// packets seem to come late, again, or anew.
func (q *sequence) counts() bool { return q.odd*4 <= q.packets }

func (s *sequences) sum() Sequences {
	var all Sequences
	for k, q := range s.senders {
		if !q.counts() {
			continue
		}
		all.Packets += q.packets
		if q.missing == 0 {
			continue
		}
		if all.Missing == 0 || q.first < all.First {
			all.First = q.first
		}
		all.Missing += q.missing
		all.ERSPAN = all.ERSPAN || k.tunnel == link.ERSPAN
		all.GRE = all.GRE || k.tunnel == link.GRE
	}
	return all
}
