package roce

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// maxLone bounds how many unpaired flows between two addresses are looked at:
// the newest.
const maxLone = 128

// pairWindow is how far an acknowledged PSN may be from the newest request.
// Two flows that do not belong together match by chance once in
// 2^24/pairWindow.
const pairWindow = 1024

// addLone puts a flow into the chain of those without a peer.
func (t *Tracker) addLone(fl *flow) {
	pair := addrPair{fl.key.src, fl.key.dst}
	fl.lone, fl.older, fl.newer = true, t.lone[pair], nil
	if fl.older != nil {
		fl.older.newer = fl
	}
	t.lone[pair] = fl
}

func (t *Tracker) dropLone(fl *flow) {
	if !fl.lone {
		return
	}
	if fl.older != nil {
		fl.older.newer = fl.newer
	}
	switch pair := (addrPair{fl.key.src, fl.key.dst}); {
	case fl.newer != nil:
		fl.newer.older = fl.older
	case fl.older != nil:
		t.lone[pair] = fl.older
	default:
		delete(t.lone, pair)
	}
	fl.lone, fl.older, fl.newer = false, nil, nil
}

// pair looks for the flow that is the other direction of fl, when the
// connection's setup was not captured. Evidence is, in this order: a reply
// whose XID the other direction has called, or an RDMA operation on memory that
// it has offered; a response whose PSN is one that the other direction has just
// used, or a request that continues what the other direction has acknowledged. An equal UDP source port, which many
// drivers use for both directions, decides between several; if it does not,
// the next packets will, since their PSNs move apart.
func (t *Tracker) pair(fl *flow, p *Packet, ref rdma.Ref) bool {
	g := t.lone[addrPair{fl.key.dst, fl.key.src}]
	if g == nil || fl.c.closed {
		return false
	}
	op := p.Opcode.Operation()
	response := p.Opcode.IsResponse()
	message := p.Opcode.IsSend() && p.Opcode.Starts() && len(p.Payload) >= 4
	var best *flow
	bestScore, ties := 0, 0
	for n := 0; g != nil && n < maxLone; g, n = g.older, n+1 {
		if g == fl || g.c == fl.c || g.c.closed || g.c.Fabric != fl.c.Fabric {
			continue
		}
		score := 0
		if message {
			from, ok := t.h.FindCall(g.c.Connection, binary.BigEndian.Uint32(p.Payload))
			if ok && from == g.side {
				score = 4
			}
		}
		if p.Opcode.HasRETH() && t.memory != nil {
			side, ok := t.memory.FindMemory(g.c.Connection, p.RETH.RKey, p.RETH.VA, p.RETH.DMALen)
			if ok && side == g.side {
				score = 4
			}
		}
		switch {
		case score != 0:
		case response:
			if !g.started {
				break
			}
			d := psnDiff(g.next, p.PSN)
			switch {
			case d > 0 && d <= pairWindow:
				score = 2
			case op != RCAcknowledge && d > -maxJump && d < maxJump:
				if r := g.find(p.PSN); r != nil && r.kind == readRequest {
					score = 2
				}
			}
		case g.hasResp:
			if d := psnDiff(p.PSN, g.lastResp); d > 0 && d <= pairWindow {
				score = 2
			}
		}
		if score != 0 && g.port == fl.port {
			score++
		}
		switch {
		case score > bestScore:
			best, bestScore, ties = g, score, 0
		case score == bestScore:
			ties++
		}
	}
	if best == nil || ties > 0 {
		return false
	}
	t.join(best, fl, ref)
	return true
}

// join makes two flows one connection: the one whose setup was captured, else
// the one that was seen first. ref is the packet that proved it.
func (t *Tracker) join(a, b *flow, ref rdma.Ref) {
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
	into.used = true
	if b.tap.Tap() != into.tap {
		b.tap.Follow(into.tap)
		b.expectCopies()
	}
	from.MergedInto = into.Connection
	t.h.Merged(into.Connection, side, from.Connection, was)
	if from.First == ref {
		t.numbers.Return(from.Connection)
	}
}

// set reports whether the setup of a connection was captured.
func (c *connection) set() bool { return c.Setup[0].Seen || c.Setup[1].Seen }
