package simulate

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// end is a queue pair: it asks, and answers what the other asks.
type end struct {
	c     *connection
	n     *network
	h     *host
	other *end
	qpn   uint32

	// What it asks.
	work     []*request // posted and not complete
	post     uint32     // PSN of the next to be posted
	at       uint32     // PSN to be sent next
	fresh    uint32     // PSN that has never been sent
	base     uint32     // oldest PSN not acknowledged
	waits    bool       // for a receiver that is not ready
	deadline int64      // of the oldest that is not acknowledged
	timing   bool
	timeouts int  // without progress between
	asked    bool // for responses that were lost, since there was progress
	dead     bool

	// What it answers.
	expected  uint32
	complete  uint32 // messages
	nak       bool   // has been sent, or the requester was told to wait
	acking    bool
	notices   []*packet // notifications of congestion
	responses []*packet // and acknowledgements, in the order of the requests
	slow      int64     // when the latest of them was ready
	turn      bool      // a response was sent last
	message   []byte
	receive   func(message []byte, call *Call)
	tcp       tcpStream
	closed    bool     // its window of TCP: it does not read
	shut      bool     // the other end's
	came      [2]int64 // when the latest packet to it came to the switch, and from there

	// Its rate.
	paced int64 // when it may send again
	rate  control
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
	data   []byte // Send
	length int
	handle uint32
	offset uint64
	psn    uint32
	count  uint32
	next   uint32 // Read: responses that have come
	call   *Call
	reply  bool
	role   uint32
	tries  uint64
	msn    uint32 // over iWARP
	done   func()
}

// Roles of packets, in their ids.
const (
	roleCall = iota + 1
	roleReply
	roleWrite
	roleRead
	roleResponse
	roleBackward
	roleDone
)

// attempts are the bits of an id that count how often the packet was sent.
const attempts = 15

const (
	doorbell = 400 // from posting to the adapter
	mask24   = 1<<24 - 1
)

func diff(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

func (e *end) packets(length int) uint32 {
	return uint32(max(1, (length+int(e.n.MTU)-1)/int(e.n.MTU)))
}

// packet makes a packet to the other end.
func (e *end) packet(op roce.Opcode) *packet {
	p := &packet{src: e.h, dst: e.other.h, to: e.other, srcPort: e.c.port(e)}
	p.Opcode = op
	if e.n.IWARP {
		p.port = e.c.ports(e)
	}
	p.PKey = roce.DefaultPKey
	p.DestQP = e.other.qpn
	return p
}

// add posts a request.
func (e *end) add(r *request) {
	if r.kind == sendRequest {
		r.length = len(r.data)
	}
	r.psn, r.count = e.post, e.packets(r.length)
	e.post = (e.post + r.count) & mask24
	e.work = append(e.work, r)
	switch r.kind {
	case sendRequest:
		e.tcp.sends++
		r.msn = e.tcp.sends
	case readRequest:
		e.tcp.reads++
		r.msn = e.tcp.reads
	}
	e.n.after(doorbell, e.h.wake)
}

func (e *end) hasWork() bool {
	if e.shut {
		return slices.ContainsFunc(e.responses, isAck)
	}
	return len(e.responses) > 0 || !e.waits && diff(e.at, e.post) < 0
}

// next is the next packet to be sent, a response and a request in turn.
func (e *end) next() *packet {
	if e.dead {
		return nil
	}
	if e.shut {
		return e.bare()
	}
	e.turn = !e.turn
	if e.turn && len(e.responses) > 0 {
		return e.respond()
	}
	if p := e.ask(); p != nil {
		return p
	}
	if len(e.responses) > 0 {
		return e.respond()
	}
	return nil
}

func isAck(p *packet) bool { return p.ack }

// bare is an acknowledgement without data, which needs no room.
func (e *end) bare() *packet {
	i := slices.IndexFunc(e.responses, isAck)
	if i < 0 {
		return nil
	}
	p := e.responses[i]
	e.responses = slices.Delete(e.responses, i, i+1)
	return p
}

// close does not read for a while: the window of TCP is closed.
func (e *end) close() {
	e.closed = true
	say := func() {
		e.answer((e.expected-1)&mask24, roce.ACKUnlimited)
		e.h.wake()
	}
	say()
	e.n.after(roce.RNR(e.n.ReceiverNotReady.Timer).RNRTimer().Nanoseconds(), func() {
		e.closed = false
		say()
	})
}

func (e *end) respond() *packet {
	p := e.responses[0]
	e.responses = e.responses[1:]
	return p
}

// ask is the next packet of a request, nil if there is none that may be sent.
func (e *end) ask() *packet {
	if e.waits || diff(e.at, e.post) >= 0 {
		return nil
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
		if r.kind == readRequest && reads >= e.c.depthOf(e) {
			return nil
		}
		return e.part(r, uint32(d))
	}
	return nil
}

// part is packet i of a request.
func (e *end) part(r *request, i uint32) *packet {
	mtu := int(e.n.MTU)
	step := uint32(1)
	var p *packet
	if r.kind == readRequest {
		p = e.packet(roce.RCReadRequest)
		p.RETH = roce.RETHFields{VA: r.offset + uint64(int(i)*mtu), RKey: r.handle, DMALen: uint32(r.length - int(i)*mtu)}
		step = r.count - i
	} else {
		p = e.packet(opcode(r.kind, i == 0, i+1 == r.count))
		if i == 0 {
			p.RETH = roce.RETHFields{VA: r.offset, RKey: r.handle, DMALen: uint32(r.length)}
		}
		p.PayloadLen = min(r.length-int(i)*mtu, mtu)
		if r.data != nil {
			p.Payload = r.data[int(i)*mtu:][:p.PayloadLen]
		}
		p.Pad = uint8(-p.PayloadLen & 3)
		p.AckReq = i+1 == r.count
		p.SE = p.AckReq && r.kind == sendRequest
	}
	p.PSN = (r.psn + i) & mask24
	p.stag, p.offset, p.msn, p.part = r.handle, r.offset+uint64(int(i)*mtu), r.msn, i
	p.call, p.last = r.call, (r.reply || r.role == roleCall) && i+1 == r.count
	e.at = (e.at + step) & mask24
	if diff(p.PSN, e.fresh) < 0 {
		e.n.resent++
		if i == 0 || diff(e.base, p.PSN) == 0 {
			r.tries++
		}
	} else {
		e.fresh = e.at
	}
	p.id = r.call.id(r.role, r.offset/uint64(mtu)+uint64(i), r.tries)
	if e.deadline == 0 || !e.timing {
		e.arm()
	}
	return p
}

// opcodes of a message's packets: kind, first, last.
var opcodes = [2][2][2]roce.Opcode{
	{{roce.RCSendMiddle, roce.RCSendLast}, {roce.RCSendFirst, roce.RCSendOnly}},
	{{roce.RCWriteMiddle, roce.RCWriteLast}, {roce.RCWriteFirst, roce.RCWriteOnly}},
}

func opcode(k requestKind, first, last bool) roce.Opcode {
	index := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return opcodes[k][index(first)][index(last)]
}

// arm starts the clock after which all that is not acknowledged is sent again.
func (e *end) arm() {
	e.deadline = e.n.now + e.n.ackTimeout()
	if e.timing {
		return
	}
	e.timing = true
	var fire func()
	fire = func() {
		switch {
		case len(e.work) == 0 || e.dead || diff(e.at, e.base) <= 0 && !e.waits:
			e.timing = false
		case e.n.now < e.deadline || e.waits || e.shut:
			e.n.at(max(e.deadline, e.n.now+1_000_000), fire)
		default:
			e.timing = false
			e.timeouts++
			if e.timeouts > e.n.Retries {
				e.dead = true
				e.c.broken()
				return
			}
			e.asked = false
			e.back(e.base)
			e.arm()
		}
	}
	e.n.at(e.deadline, fire)
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
	e.at = psn
	e.arm()
	e.h.wake()
}

// acknowledged completes what has been received up to psn. A Read before it that lacks responses is asked for
// again.
func (e *end) acknowledged(psn uint32) {
	for len(e.work) > 0 {
		r := e.work[0]
		last := (r.psn + r.count - 1) & mask24
		if r.kind == readRequest {
			if r.next < r.count {
				e.advance((r.psn + r.next) & mask24)
				if diff(psn, last) >= 0 && !e.asked {
					e.asked = true
					e.back(e.base) // later requests have been answered: its responses were lost
				}
				break
			}
		} else if diff(last, psn) > 0 {
			if diff(psn, e.base) >= 0 {
				e.advance((psn + 1) & mask24)
			}
			break
		}
		e.advance((last + 1) & mask24)
		e.work = e.work[1:]
		if r.done != nil {
			r.done()
		}
	}
	if diff(e.at, e.base) < 0 {
		e.at = e.base
	}
	e.h.wake()
}

// advance notes progress.
func (e *end) advance(base uint32) {
	if base != e.base {
		e.base = base
		e.timeouts = 0
		e.arm()
	}
}

// take receives a packet.
func (e *end) take(p *packet) {
	switch {
	case e.dead || e.h.down:
	case p.Opcode == roce.CNP:
		e.rate.slower(e)
	case p.Opcode.IsResponse():
		e.carry(p)
		e.response(p)
	default:
		e.carry(p)
		e.request(p)
	}
}

// carry takes the acknowledgement that came with data. They may have overtaken responses to Reads.
func (e *end) carry(p *packet) {
	if !p.carries {
		return
	}
	psn := p.carried
	for _, r := range e.work {
		if r.kind == readRequest && r.next < r.count && diff(psn, r.psn) >= 0 {
			psn = (r.psn - 1) & mask24
			break
		}
	}
	e.acknowledged(psn)
}

// response takes an answer of the peer.
func (e *end) response(p *packet) {
	if p.Opcode == roce.RCAcknowledge {
		if p.seg != nil && e.shut != p.seg.closed {
			e.shut = p.seg.closed
			e.arm()
			e.h.wake()
		}
		switch s := p.AETH.Syndrome; {
		case s.IsACK():
			e.acknowledged(p.PSN)
		case s.IsRNR():
			e.acknowledged((p.PSN - 1) & mask24)
			e.waits = true
			e.n.after(s.RNRTimer().Nanoseconds(), func() {
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
			e.got(p)
			r.next++
			if r.next == r.count {
				if e.n.IWARP {
					e.ack()
				}
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
func (e *end) request(p *packet) {
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
	case op.IsSend() && op.Starts() && e.n.refuses(e, p):
		if e.n.IWARP {
			e.close()
			break
		}
		e.nak = true // what follows is dropped in silence
		e.answer(p.PSN, roce.RNR(e.n.ReceiverNotReady.Timer))
		return
	}
	e.nak = false
	e.got(p)
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
			e.receive(m, p.call)
		}
	case op.Ends():
		e.complete++
	}
	if p.AckReq {
		e.ack()
	}
}

// refuses decides whether the first packets of a message find no buffer.
func (n *network) refuses(e *end, p *packet) bool {
	r := n.ReceiverNotReady
	if r == nil || p.call == nil || (e.h == n.server) != r.AtServer {
		return false
	}
	if p.call.refused >= r.Times || !n.chance(r.Rate, "receiver not ready", uint64(p.call.Index)) {
		return false
	}
	p.call.refused++
	return true
}

// read answers a Read Request.
func (e *end) read(p *packet) {
	n := int(p.RETH.DMALen)
	count := e.packets(n)
	var list []*packet
	for i := range count {
		op := roce.RCReadResponseMiddle
		switch {
		case count == 1:
			op = roce.RCReadResponseOnly
		case i == 0:
			op = roce.RCReadResponseFirst
		case i == count-1:
			op = roce.RCReadResponseLast
		}
		q := e.packet(op)
		q.PSN = (p.PSN + i) & mask24
		q.PayloadLen = min(n-int(i*e.n.MTU), int(e.n.MTU))
		q.Pad = uint8(-q.PayloadLen & 3)
		if op.Headers().Has(roce.HasAETH) {
			q.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: e.complete & mask24}
		}
		q.stag, q.offset, q.ends = p.stag, p.offset+uint64(i*e.n.MTU), i == count-1
		q.call = p.call
		q.id = p.call.id(roleResponse, p.RETH.VA/uint64(e.n.MTU)+uint64(i), p.id&attempts)
		list = append(list, q)
	}
	hold := e.n.ackTime(e, p.PSN)
	if s := e.n.ClientReadResponse; s != nil && e.h != e.n.server {
		hold += e.n.around(s.Delay, 0.3, "read response", p.id)
	}
	if s := e.n.ServerTime; s != nil && s.Data > 0 && e.h == e.n.server {
		hold += e.n.around(s.Data, 0.3, "data", p.id)
	}
	e.ready(hold, list...)
}

// ready sends answers when they are ready: none overtakes another.
func (e *end) ready(hold int64, list ...*packet) {
	e.slow = max(e.n.now+hold, e.slow)
	e.n.at(e.slow, func() {
		e.responses = append(e.responses, list...)
		e.h.wake()
	})
}

// ack acknowledges what has been received, in a moment.
func (e *end) ack() {
	if e.acking {
		return
	}
	e.acking = true
	e.slow = max(e.n.now+e.n.ackTime(e, e.expected), e.slow)
	at := e.slow
	if e.n.DelayedAck && e.tcp.unacked < 2 {
		at = e.n.now + delayedAck
	}
	e.n.at(at, func() {
		if !e.acking {
			return // data have carried it
		}
		e.acking = false
		e.answer((e.expected-1)&mask24, roce.ACKUnlimited)
	})
}

// ackTime is what the adapter of an end needs to acknowledge, or to answer a Read.
func (n *network) ackTime(e *end, psn uint32) int64 {
	if n.AckSpread == 0 {
		return n.AckTime
	}
	return n.around(n.AckTime, n.AckSpread, "acknowledge", uint64(e.qpn)<<32|uint64(psn))
}

func (e *end) answer(psn uint32, s roce.Syndrome) {
	p := e.packet(roce.RCAcknowledge)
	p.PSN, p.ack = psn, true
	p.AETH = roce.AETHFields{Syndrome: s, MSN: e.complete & mask24}
	e.ready(0, p)
}
