package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// wire is the request stream of one side on RoCE and InfiniBand: what is needed to check the next packet.
type wire struct {
	started   bool
	announced bool   // known only from the setup; no packet has been seen
	next      uint32 // next expected PSN
	open      uint8  // the current message: a base opcode, or none
	disturbed bool   // retransmission in progress: messages may restart in the middle
	at        int64
	left      uint64 // RDMA Write: bytes remaining
	va        uint64 // RDMA Write: address of the next byte
	counted   bool   // left is known
	acked     uint32 // the peer has acknowledged up to this PSN
	hasAck    bool
}

// proves reports whether packets up to psn, and at least one from psn on, have been seen and acknowledged.
// The decoder then knows which packets are missing.
func (w *wire) proves(psn uint32) bool {
	return w.started && !w.announced && w.hasAck && reached(w.acked, psn) && reached(w.next-1, psn)
}

// reached reports whether psn equals other or follows it.
func reached(psn, other uint32) bool { return (psn-other)&psnMask < 1<<23 }

const (
	openNone uint8 = iota
	openSend
	openWrite
)

// idle is how long, in nanoseconds, after its last packet a sender may have timed out waiting for an
// acknowledgement, so that it resumes in the middle of a message.
const idle = 2e6

const psnMask = 1<<24 - 1

// wirePacket checks one packet of a request stream.
func (c *Checker) wirePacket(s *conn, p *packet) {
	op := p.opcode
	if !op.IsDefined() {
		return
	}
	switch op.Service() {
	case roce.ServiceRC, roce.ServiceXRC:
	default:
		if !op.IsCNP() {
			return
		}
	}
	s.calm[0].streak, s.calm[1].streak = 0, 0
	from, ok := s.sender(p)
	if !ok {
		return
	}
	c.fabricPacket(s, p, from)
	if op.IsCNP() {
		return
	}
	if s.first[from] == 0 && !op.IsResponse() {
		s.first[from] = p.ref.Number
	}
	if op.IsAcknowledge() {
		s.expect(from.Other())
		s.unseen(from.Other(), p)
		if w := &s.wire[from.Other()]; p.syndrome.IsACK() {
			w.acked, w.hasAck = p.psn, true
		}
		return
	}
	if s.many {
		return
	}
	w := &s.wire[from]
	mtu := s.c.Setup[0].PathMTU
	c.size(s, p, from, mtu)
	if op.IsReadResponse() {
		return
	}
	started := w.started && !w.announced
	follows := started && p.psn == w.next
	if started && !follows && int32((p.psn-w.next)<<8) < 0 {
		w.disturbed = true // retransmitted
	}
	if p.ref.Time-w.at > idle {
		w.disturbed = w.disturbed || w.open != openNone
	}
	w.at = p.ref.Time
	w.started, w.announced = true, false
	w.next = (p.psn + 1) & psnMask

	c.sequence(s, w, p, from, follows)
	if op.IsReadRequest() {
		n, known := s.responses(p.dmaLen)
		w.next = (p.psn + n) & psnMask
		w.started = known // else the end of its responses is unknown
	}
}

// sequence checks the place of a packet in its message: at the beginning, in the middle or at the end.
// follows means that its PSN is the next one.
func (c *Checker) sequence(s *conn, w *wire, p *packet, from rdma.Side, follows bool) {
	op := p.opcode
	kind := openNone
	switch {
	case op.IsSend():
		kind = openSend
	case op.IsWrite():
		kind = openWrite
	}
	starts, ends := kind == openNone || op.Starts(), kind == openNone || op.Ends()
	switch {
	case !follows || w.disturbed:
	case starts && w.open != openNone, !starts && w.open != kind:
		if c.opt.Match == nil {
			c.breach(s, ruleOpcodeSequence, p.ref, from, func() (string, string) {
				return [...]string{"the beginning of a message", "Middle or Last of a Send", "Middle or Last of an RDMA Write"}[w.open],
					fmt.Sprintf("%v with PSN %d, right after PSN %d", op, p.psn, (p.psn-1)&psnMask)
			})
		}
	default:
		c.ok(ruleOpcodeSequence)
	}

	if kind == openWrite {
		c.writeLength(s, w, p, from, starts, ends, follows)
	}
	if starts {
		w.disturbed = w.disturbed && !ends
	} else if ends {
		w.disturbed = false
	}
	w.open = kind
	if ends {
		w.open = openNone
	}
}

// responses is how many packets respond to an RDMA Read Request for n bytes, if that is known.
func (s *conn) responses(n uint32) (count uint32, known bool) {
	mtu := s.c.Setup[0].PathMTU
	if mtu == 0 {
		mtu = s.c.MTU
	}
	switch {
	case n <= 256:
		return 1, true
	case mtu == 0:
		return 1, false
	}
	return uint32((uint64(n) + uint64(mtu) - 1) / uint64(mtu)), true
}

// expect initialises the request stream of a side from its setup, before any of it was seen.
func (s *conn) expect(side rdma.Side) {
	// The PSN in a setup message is the one that its sender expects to receive.
	if psn, ok := s.c.Setup[side.Other()].Start(); ok && !s.wire[side].started {
		w := &s.wire[side]
		w.next, w.started, w.announced = psn, true, true
	}
}

// unseen records an acknowledgement of packets that were not captured.
func (s *conn) unseen(side rdma.Side, p *packet) {
	w := &s.wire[side]
	ahead := (p.psn - w.next) & psnMask
	if w.started && p.syndrome.IsACK() && ahead < 1<<16 {
		s.cut[side]++
		w.next = (p.psn + 1) & psnMask
		w.disturbed = true
		s.losses(p.ref.Time)
	}
}

// writeLength compares the payload of an RDMA Write with its length.
func (c *Checker) writeLength(s *conn, w *wire, p *packet, from rdma.Side, starts, ends, follows bool) {
	switch {
	case starts:
		w.counted, w.left, w.va = true, uint64(p.dmaLen), p.va
	case !follows || w.disturbed:
		w.counted = false
	}
	if !w.counted {
		return
	}
	n := uint64(p.payloadLen)
	if n <= w.left && (!ends || n == w.left) && (ends || n < w.left) {
		w.left -= n
		if ends {
			c.ok(ruleDMALength)
		}
		return
	}
	w.counted = false
	if c.opt.Match != nil {
		return
	}
	c.breach(s, ruleDMALength, p.ref, from, func() (string, string) {
		return fmt.Sprintf("%d bytes left of the Write", w.left),
			fmt.Sprintf("%v with %d bytes, offset 0x%x", p.opcode, n, w.va)
	})
}

// size checks the payload of a packet against the path MTU.
func (c *Checker) size(s *conn, p *packet, from rdma.Side, mtu uint32) {
	op, n := p.opcode, p.payloadLen
	if !op.IsSend() && !op.IsWrite() && !op.IsReadResponse() {
		return
	}
	rule, bad := ruleFirstNotMTU, false
	switch {
	case !op.Ends() && mtu != 0:
		bad = n != mtu
	case !op.Ends():
		bad = n < 256 || n > roce.MaxMTU || n&(n-1) != 0
	case mtu == 0:
		c.skip(rulePayloadOverMTU, NoSetup)
		return
	default:
		rule, bad = rulePayloadOverMTU, n > mtu
	}
	if !bad {
		c.ok(rule)
		return
	}
	if c.opt.Match != nil {
		return
	}
	c.breach(s, rule, p.ref, from, func() (expected, seen string) {
		switch {
		case mtu == 0:
			expected = "256, 512, 1024, 2048 or 4096 bytes"
		case rule == ruleFirstNotMTU:
			expected = fmt.Sprintf("%d bytes, the path MTU", mtu)
		default:
			expected = fmt.Sprintf("at most %d bytes, the path MTU", mtu)
		}
		return expected, fmt.Sprintf("%v with %d bytes", op, n)
	})
}

// sender is the side that sent a packet.
func (s *conn) sender(p *packet) (rdma.Side, bool) {
	a, b := &s.c.Ends[0], &s.c.Ends[1]
	if a.Addr != b.Addr {
		switch *p.src {
		case a.Addr:
			return 0, true
		case b.Addr:
			return 1, true
		}
		return 0, false
	}
	if a.QPN == b.QPN {
		return 0, false
	}
	switch p.destQP {
	case b.QPN:
		return 0, true
	case a.QPN:
		return 1, true
	}
	return 0, false
}
