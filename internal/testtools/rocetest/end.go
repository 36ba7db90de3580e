package rocetest

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// end is a queue pair: it asks, and answers what the other asks.
type end struct {
	l    *Link
	n    *network
	side rdma.Side

	// What it asks.
	work    []*request // posted and not complete
	post    uint32     // PSN of the next to be posted
	at      uint32     // PSN to be sent next
	fresh   uint32     // PSN that has never been sent
	base    uint32     // oldest PSN not acknowledged
	pumping bool
	waits   bool // for a receiver that is not ready
	timer   int
	resumed bool // the next packet is the first after a NAK
	asked   bool // for responses that were lost, since there was progress

	// What it answers.
	expected uint32
	complete uint32 // messages
	nak      bool   // has been sent
	acking   bool
	out      []*Packet
	sending  bool
	message  []byte
	receive  func(message []byte, invalidates bool, handle uint32)
	regions  map[uint32][]region
}

type requestKind uint8

const (
	sendRequest requestKind = iota
	writeRequest
	readRequest
)

// request is an operation that was posted.
type request struct {
	kind   requestKind
	data   []byte // Send, Write
	length int    // Read
	handle uint32
	offset uint64
	inv    bool
	psn    uint32
	count  uint32
	next   uint32 // Read: responses that have come
	tx     *Transaction
	role   Role
	done   func()
}

// region is memory that the other side may read.
type region struct {
	offset uint64
	data   []byte
}

const (
	window  = 64      // packets under way
	timeout = 800_000 // until all is retransmitted
	ackWait = 1500
)

func newEnd(l *Link, side rdma.Side) *end {
	e := &end{l: l, n: l.n, side: side, regions: make(map[uint32][]region)}
	e.post = l.PSN[side]
	e.at, e.fresh, e.base = e.post, e.post, e.post
	e.expected = l.PSN[side.Other()]
	return e
}

func (e *end) peer() *end { return e.l.Ends[e.side.Other()] }

func (e *end) packets(length int) uint32 {
	return uint32(max(1, (length+int(e.n.MTU)-1)/int(e.n.MTU)))
}

// add posts a request.
func (e *end) add(r *request) {
	length := len(r.data)
	if r.kind == readRequest {
		length = r.length
	}
	r.psn, r.count = e.post, e.packets(length)
	e.post = (e.post + r.count) & mask24
	e.work = append(e.work, r)
	e.pump()
}

// pump sends what may be sent, one packet after the other.
func (e *end) pump() {
	if e.pumping || e.waits {
		return
	}
	e.pumping = true
	e.n.after(perFrame, func() {
		e.pumping = false
		if e.step() {
			e.pump()
		}
	})
}

// step sends one packet and reports whether there may be more.
func (e *end) step() bool {
	if e.waits || diff(e.at, e.post) >= 0 {
		return false
	}
	reads := 0
	for _, r := range e.work {
		d := diff(e.at, r.psn)
		if d < 0 {
			break
		}
		if uint32(d) >= r.count {
			if r.kind == readRequest {
				reads++
			}
			continue
		}
		if r.kind == readRequest && reads >= e.n.Depth || diff(e.at, e.base) >= window {
			return false
		}
		e.transmit(r, uint32(d))
		return true
	}
	return false
}

// transmit sends packet i of a request.
func (e *end) transmit(r *request, i uint32) {
	mtu := e.n.MTU
	step := uint32(1)
	var p *Packet
	if r.kind == readRequest {
		p = e.l.packet(e.side, roce.RCReadRequest)
		p.RETH = roce.RETHFields{VA: r.offset + uint64(i)*uint64(mtu), RKey: r.handle, DMALen: uint32(r.length) - i*mtu}
		step = r.count - i
	} else {
		rest := r.data[min(int(i*mtu), len(r.data)):]
		payload := rest[:min(len(rest), int(mtu))]
		first, last := i == 0, i+1 == r.count
		rename := e.resumed && e.n.Rename && !first && r.kind == writeRequest
		var op roce.Opcode
		switch {
		case (first || rename) && last:
			op = roce.RCSendOnly
		case first || rename:
			op = roce.RCSendFirst
		case last:
			op = roce.RCSendLast
		default:
			op = roce.RCSendMiddle
		}
		if r.kind == writeRequest {
			op = map[roce.Opcode]roce.Opcode{
				roce.RCSendOnly: roce.RCWriteOnly, roce.RCSendFirst: roce.RCWriteFirst,
				roce.RCSendMiddle: roce.RCWriteMiddle, roce.RCSendLast: roce.RCWriteLast,
			}[op]
		} else if last && r.inv {
			op = map[roce.Opcode]roce.Opcode{
				roce.RCSendOnly: roce.RCSendOnlyInvalidate, roce.RCSendLast: roce.RCSendLastInvalidate,
			}[op]
		}
		p = e.l.packet(e.side, op)
		p.IETH = r.handle
		p.RETH = roce.RETHFields{VA: r.offset + uint64(i)*uint64(mtu), RKey: r.handle, DMALen: uint32(len(rest))}
		p.Payload, p.PayloadLen = payload, len(payload)
		p.Pad = uint8(-len(payload) & 3)
		p.SE = last && r.kind == sendRequest
		p.AckReq = last
	}
	e.resumed = false
	p.PSN = (r.psn + i) & mask24
	p.Tx, p.Role = r.tx, r.role
	e.at = (e.at + step) & mask24
	if diff(p.PSN, e.fresh) < 0 {
		p.Resent = true
		e.n.resent++
	} else {
		e.fresh = e.at
	}
	e.n.send(p, e.peer().request)
	e.arm()
}

// arm starts the clock after which all is retransmitted.
func (e *end) arm() {
	e.timer++
	timer := e.timer
	e.n.after(timeout, func() {
		if timer == e.timer && len(e.work) > 0 {
			e.asked = false
			e.back(e.base)
		}
	})
}

// back sends again from psn on.
func (e *end) back(psn uint32) {
	for _, r := range e.work {
		if r.kind == readRequest && r.next < r.count && diff((r.psn+r.next)&mask24, psn) < 0 {
			psn = (r.psn + r.next) & mask24
		}
	}
	if diff(psn, e.base) < 0 {
		psn = e.base
	}
	e.at, e.resumed = psn, true
	e.arm()
	e.pump()
}

// acknowledged completes what has been received up to psn. It returns false if
// a Read before lacks responses.
func (e *end) acknowledged(psn uint32) {
	for len(e.work) > 0 {
		r := e.work[0]
		last := (r.psn + r.count - 1) & mask24
		if r.kind == readRequest {
			if r.next < r.count {
				e.base = (r.psn + r.next) & mask24
				if diff(psn, last) >= 0 && !e.asked {
					e.asked = true
					e.back(e.base) // later requests have been answered: its responses were lost
				}
				break
			}
		} else if diff(last, psn) > 0 {
			if diff(psn, e.base) >= 0 {
				e.base = (psn + 1) & mask24
			}
			break
		}
		e.base = (last + 1) & mask24
		e.work = e.work[1:]
		if r.done != nil {
			r.done()
		}
	}
	if diff(e.at, e.base) < 0 {
		e.at = e.base
	}
	e.timer++
	if len(e.work) > 0 {
		e.arm()
	}
	e.pump()
}

// response takes an answer of the peer.
func (e *end) response(p *Packet) {
	if p.Opcode == roce.RCAcknowledge {
		switch s := p.AETH.Syndrome; {
		case s.IsACK():
			e.acknowledged(p.PSN)
		case s.IsRNR():
			e.acknowledged((p.PSN - 1) & mask24)
			e.waits = true
			e.n.after(20_000, func() {
				e.waits = false
				e.back(p.PSN)
			})
		default:
			e.acknowledged((p.PSN - 1) & mask24)
			e.back(p.PSN)
		}
		return
	}
	for _, r := range e.work {
		d := diff(p.PSN, r.psn)
		if r.kind != readRequest || d < 0 || uint32(d) >= r.count {
			continue
		}
		switch {
		case uint32(d) == r.next:
			e.asked = false
			r.next++
			if r.next == r.count {
				e.acknowledged(p.PSN)
			} else {
				e.acknowledged((r.psn - 1) & mask24)
			}
		case uint32(d) > r.next && !e.asked:
			e.asked = true
			e.back((r.psn + r.next) & mask24)
		}
		return
	}
}

// request takes a packet of the peer's requests.
func (e *end) request(p *Packet) {
	d := diff(p.PSN, e.expected)
	op := p.Opcode
	switch {
	case d > 0:
		if !e.nak {
			e.nak = true
			e.answer(e.expected, roce.NAKPSNSequence)
		}
		return
	case d < 0:
		if op.IsReadRequest() {
			e.read(p)
		} else {
			e.ack()
		}
		return
	case op.IsSend() && op.Starts() && e.n.chance(e.n.Loss.NotNow):
		e.answer(p.PSN, roce.RNR(1))
		return
	}
	e.nak = false
	e.expected = (e.expected + 1) & mask24
	switch {
	case op.IsReadRequest():
		e.complete++
		e.expected = (p.PSN + e.packets(int(p.RETH.DMALen))) & mask24
		e.read(p)
		return
	case op.IsSend():
		e.message = append(e.message, p.Payload...)
		if op.Ends() {
			m := e.message
			e.message = nil
			e.complete++
			e.receive(m, op.HasInvalidate(), p.IETH)
		}
	case op.Ends():
		e.complete++
	}
	if p.AckReq {
		e.ack()
	}
}

// read answers a Read Request.
func (e *end) read(p *Packet) {
	var data []byte
	for _, r := range e.regions[p.RETH.RKey] {
		if p.RETH.VA >= r.offset && p.RETH.VA+uint64(p.RETH.DMALen) <= r.offset+uint64(len(r.data)) {
			data = r.data[p.RETH.VA-r.offset:][:p.RETH.DMALen]
		}
	}
	if data == nil {
		return // a late copy: the memory is no longer offered
	}
	count := e.packets(len(data))
	for i := range count {
		part := data[i*e.n.MTU:]
		part = part[:min(len(part), int(e.n.MTU))]
		op := roce.RCReadResponseMiddle
		switch {
		case count == 1:
			op = roce.RCReadResponseOnly
		case i == 0:
			op = roce.RCReadResponseFirst
		case i == count-1:
			op = roce.RCReadResponseLast
		}
		q := e.l.packet(e.side, op)
		q.PSN = (p.PSN + i) & mask24
		q.Payload, q.PayloadLen = part, len(part)
		q.Pad = uint8(-len(part) & 3)
		q.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: e.complete & mask24}
		q.Tx, q.Role = p.Tx, ReadResponse
		e.out = append(e.out, q)
	}
	e.flush()
}

// ack acknowledges what has been received, in a moment.
func (e *end) ack() {
	if e.acking {
		return
	}
	e.acking = true
	e.n.after(ackWait, func() {
		e.acking = false
		e.answer((e.expected-1)&mask24, roce.ACKUnlimited)
	})
}

func (e *end) answer(psn uint32, s roce.Syndrome) {
	p := e.l.packet(e.side, roce.RCAcknowledge)
	p.PSN, p.Role = psn, Acknowledge
	p.AETH = roce.AETHFields{Syndrome: s, MSN: e.complete & mask24}
	e.out = append(e.out, p)
	e.flush()
}

// flush sends the answers one after the other.
func (e *end) flush() {
	if e.sending || len(e.out) == 0 {
		return
	}
	e.sending = true
	e.n.after(perFrame, func() {
		e.sending = false
		p := e.out[0]
		e.out = e.out[1:]
		e.n.send(p, e.peer().response)
		e.flush()
	})
}
