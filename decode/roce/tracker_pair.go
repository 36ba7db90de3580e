package roce

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// maxLone bounds how many unpaired flows between two addresses are looked at.
const maxLone = 32

// pairWindow is how far an acknowledged PSN may be from the newest request.
// Two flows that do not belong together match by chance once in
// 2^24/pairWindow.
const pairWindow = 1024

// pair looks for the flow that is the other direction of fl, when the
// connection's setup was not captured. Evidence is, in this order: a response
// whose PSN is one that the other direction has just used; a request that
// continues what the other direction has acknowledged; a reply whose XID the
// other direction has called. An equal UDP source port, which many drivers
// use for both directions, decides between several.
func (t *Tracker) pair(fl *flow, p *Packet, ref rdma.Ref) bool {
	l := t.lone[addrPair{fl.key.dst, fl.key.src}]
	if len(l) == 0 {
		return false
	}
	if len(l) > maxLone {
		l = l[len(l)-maxLone:]
	}
	op := p.Opcode.Operation()
	isResponse := op >= RCReadResponseFirst && op <= RCAtomicAcknowledge
	var best *flow
	for i := len(l) - 1; i >= 0; i-- {
		g := l[i]
		if g == fl || g.c == fl.c || g.c.Fabric != fl.c.Fabric {
			continue
		}
		match := false
		switch {
		case isResponse:
			if !g.started {
				break
			}
			d := psnDiff(g.next, p.PSN)
			match = d > 0 && d <= pairWindow || op != RCAcknowledge && g.find(p.PSN) != nil
		case g.hasResp:
			d := psnDiff(p.PSN, g.lastResp)
			match = d > 0 && d <= pairWindow
		}
		if !match && !isResponse && len(p.Payload) >= 4 &&
			(op == RCSendOnly || op == RCSendFirst || op == RCSendOnlyInvalidate) {
			from, ok := t.h.FindCall(g.c.Connection, binary.BigEndian.Uint32(p.Payload))
			match = ok && from == g.side
		}
		if match && (best == nil || best.port != fl.port && g.port == fl.port) {
			best = g
		}
	}
	if best == nil {
		return false
	}
	t.join(best, fl)
	return true
}

// join makes two flows one connection: the one whose setup was captured, else
// the one that was seen first.
func (t *Tracker) join(a, b *flow) {
	if b.c.ID < a.c.ID && !a.c.set() || b.c.set() {
		a, b = b, a
	}
	t.dropLone(a)
	t.dropLone(b)
	into, from := a.c, b.c
	t.remove(from)
	for _, id := range from.comm {
		if t.byID[id] == from {
			delete(t.byID, id)
		}
	}
	was, side := b.side, a.side.Other()
	b.side = side
	b.c = into
	into.flows[side] = b
	into.Ends[a.side].QPN = b.key.qpn
	into.Sent[side] = from.Sent[was]
	if into.mtu == 0 {
		into.mtu, into.MTU = from.mtu, from.MTU
	}
	if from.Last.Number > into.Last.Number {
		into.Last = from.Last
	}
	from.MergedInto = into.Connection
	t.h.Merged(into.Connection, side, from.Connection, was)
}

// set reports whether the setup of a connection was captured.
func (c *connection) set() bool { return c.Setup[0].Seen || c.Setup[1].Seen }
