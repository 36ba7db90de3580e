package check

import (
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// stretch is part of an RDMA Write or of a Read Response: packets that are neither the first nor the last, each the one that has to be
// next. Of large transfers nearly all are. All that such a packet changes is in here: requests, marking and wire, and the counts of
// rules, are brought up to date by Checker.halt before anything else of the connection is looked at.
type stretch struct {
	on      bool
	asks    bool // the newest packet asks for an acknowledgement
	from    rdma.Side
	opcode  roce.Opcode
	traffic uint8
	tap     uint16
	mtu     uint32
	payload uint32 // bytes of each packet
	next    uint32 // PSN
	left    uint64 // bytes
	most    int64  // nanoseconds between two packets
	last    rdma.Ref
	route   *roce.Route
	packets uint64    // since it is on
	gaps    [2]uint64 // of the connection
}

// takes judges a packet if it is the one that had to be next. If it returns false, nothing has changed. What it counts is what
// usualRequest and usualResponse would count: TestUsual and FuzzCheck compare them.
func (q *stretch) takes(k *rdma.Connection, v *decode.OrdinaryView) bool {
	l := v.Lean
	n := uint32(l.PayloadLen)
	if l.Opcode != q.opcode || l.PSN != q.next || l.Route != q.route || n != q.payload || uint64(n) >= q.left || l.Traffic != q.traffic || l.Tag != 0 ||
		v.Packet.Tap != q.tap || v.Packet.Time-q.last.Time > q.most || k.Setup[0].PathMTU != q.mtu ||
		k.Sent[0].Gaps != q.gaps[0] || k.Sent[1].Gaps != q.gaps[1] || k.Sent[0].BadCRC|k.Sent[1].BadCRC != 0 {
		return false
	}
	q.next, q.left, q.asks = (q.next+1)&psnMask, q.left-uint64(n), l.AckReq
	q.last.Time, q.last.Number = v.Packet.Time, v.Packet.Number
	q.packets++
	return true
}

// begin expects the packets that follow a packet of a message, if all is known that they have to be.
func (s *conn) begin(v *decode.OrdinaryView, from rdma.Side, h shape) {
	q, l, k := &s.stretch, v.Lean, s.c
	next, payload := (l.PSN+1)&psnMask, uint32(l.PayloadLen)
	if h&shapeWrite != 0 {
		w := &s.wire[from]
		if !w.counted {
			return
		}
		q.opcode, q.left, q.most = roce.RCWriteMiddle, w.left, idle
	} else {
		d := &s.requests[from.Other()]
		if left := uint64(d.answer.left); !d.answer.open || left > uint64(payload)*uint64((d.high-next)&psnMask) {
			return // more than was asked for
		}
		q.opcode, q.left, q.most = roce.RCReadResponseMiddle, uint64(d.answer.left), stall-1
	}
	if tap := int32(v.Packet.Tap); s.taps[0] != tap || s.taps[1] != tap || s.misses() != s.gaps || k.Sent[0].BadCRC|k.Sent[1].BadCRC != 0 {
		return
	}
	q.on, q.asks, q.from, q.traffic, q.tap = true, l.AckReq, from, l.Traffic, v.Packet.Tap
	q.mtu, q.payload, q.next, q.route, q.packets = k.Setup[0].PathMTU, payload, next, l.Route, 0
	q.last.Time, q.last.Number = v.Packet.Time, v.Packet.Number
	q.gaps[0], q.gaps[1] = k.Sent[0].Gaps, k.Sent[1].Gaps
}

// halt ends the stretch of a connection.
func (c *Checker) halt(s *conn) {
	q := &s.stretch
	q.on = false
	if q.packets == 0 {
		return
	}
	last := (q.next - 1) & psnMask
	s.marks[q.from].moved(0, last, q.last)
	rules := [...]id{ruleDSCP, ruleFirstNotMTU, ruleStalled, ruleOpcodeSequence}
	of := rules[:]
	if q.opcode == roce.RCWriteMiddle {
		d, w := &s.requests[q.from], &s.wire[q.from]
		d.high = q.next
		d.asked.open, d.asked.psn, d.asked.ref = q.asks, last, q.last
		w.at, w.next, w.left = q.last.Time, q.next, q.left
	} else {
		d := &s.requests[q.from.Other()]
		s.marks[q.from].top = last
		d.answer.next, d.answer.left = q.next, uint32(q.left)
		d.acknowledge(last)
		of = rules[:3]
	}
	stats := c.statsOf(s)
	for _, r := range of {
		if c.on[r] != Off {
			stats[r].Judged += q.packets
		}
	}
}
