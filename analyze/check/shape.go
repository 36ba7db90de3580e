package check

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// shape is what a packet does for its message, as far as the rules ask.
type shape uint8

const (
	shapeSend shape = 1 << iota
	shapeWrite
	shapeRead         // Request
	shapeReadResponse // any packet of it
	shapeStarts
	shapeEnds

	shapeMoves   = shapeSend | shapeWrite // a request with payload
	shapeRequest = shapeMoves | shapeRead
)

// shapes lists the shape of each common opcode, 0 for all others.
var shapes = func() (list [256]shape) {
	for i := range list {
		op := roce.Opcode(i)
		if op.Service() != roce.ServiceRC {
			continue
		}
		s := shape(0)
		for bit, is := range map[shape]bool{shapeSend: op.IsSend(), shapeWrite: op.IsWrite(), shapeRead: op.IsReadRequest(), shapeReadResponse: op.IsReadResponse()} {
			if is {
				s |= bit
			}
		}
		if s != 0 && op.Starts() {
			s |= shapeStarts
		}
		if s != 0 && op.Ends() {
			s |= shapeEnds
		}
		list[i] = s
	}
	return list
}()

// open is the message that is under way behind a request: see wire.open.
func (h shape) open() uint8 {
	switch {
	case h&shapeEnds != 0:
		return openNone
	case h&shapeSend != 0:
		return openSend
	}
	return openWrite
}

// before is the message that has to be under way when a request comes.
func (h shape) before() uint8 {
	if h&shapeStarts != 0 {
		return openNone
	}
	return (h &^ shapeEnds).open()
}

// fits reports whether a packet has as much payload as it has to: the path MTU if others of the message follow, and no more in any case.
func (h shape) fits(n, mtu uint32) bool {
	switch {
	case h&shapeEnds != 0:
		return mtu == 0 || n <= mtu
	case mtu != 0:
		return n == mtu
	}
	return n >= 256 && n <= roce.MaxMTU && n&(n-1) == 0
}

// sized counts that the payload of a packet fits.
func (c *Checker) sized(h shape, mtu uint32) {
	switch {
	case h&shapeEnds == 0:
		c.ok(ruleFirstNotMTU)
	case mtu == 0:
		c.skip(rulePayloadOverMTU, NoSetup)
	default:
		c.ok(rulePayloadOverMTU)
	}
}

// like reports whether a packet has the markings that all before it had, and no VLAN tag.
func (m *marking) like(l *roce.Lean) bool {
	return m.seen && m.dscp == l.DSCP() && m.priority == 0 && l.Tag == 0
}

// goesOn reports whether a packet is the next of a message that was begun, and whether it is late.
func (m *marking) goesOn(h shape, psn uint32, now int64) (on, late bool) {
	if h&shapeStarts != 0 || !m.inside || psn != (m.lastPSN+1)&psnMask {
		return false, false
	}
	return true, now-m.last.Time >= stall
}

// moved notes a packet of a message.
func (m *marking) moved(h shape, psn uint32, ref rdma.Ref) {
	m.inside, m.last, m.lastPSN = h&shapeEnds == 0, ref, psn
}
