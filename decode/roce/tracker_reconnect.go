package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

const (
	// replaceTries is how many packets of a flow without a peer are looked at to
	// find out whether it has taken the place of another.
	replaceTries = 256
	// What one packet counts, and what is enough: an exact acknowledgement and
	// a reply, or three replies.
	replaceExact  = 2
	replaceReply  = 1
	replaceEnough = 3
)

// reconnected looks for a flow with a peer that fl answers in place of that peer: its
// sender has connected a new queue pair to the same queue pair of the other node,
// whose number alone is on the wire, and the capture lacks the setup. The peer must
// have been silent since the request that fl answers, which nobody else has
// answered. fl must acknowledge just that request, and reply to its call or use its
// memory.
func (x *pairing) reconnected(fl *flow, p *Packet, ref rdma.Ref) *flow {
	if fl.c.set() || fl.c.closed || fl.c.Sent[fl.side].Packets > replaceTries {
		return nil
	}
	var best *flow
	evidence, ties := 0, 0
	g := x.paired[addrPair{fl.key.dst, fl.key.src, fl.key.tenant}]
	for n := 0; g != nil && n < maxUnpaired; g, n = g.older, n+1 {
		peer := g.peer()
		if g.c == fl.c || g.c.closed || g.c.Fabric != fl.c.Fabric || peer == nil || peer.last > g.last {
			continue
		}
		e := x.evidence(fl, g, p) & (exactPSN | matchingRPC)
		if e == exactPSN && !g.awaits(p.PSN) {
			continue
		}
		switch {
		case e > evidence:
			best, evidence, ties = g, e, 0
		case e == evidence:
			ties++
		}
	}
	if best == nil || ties > 0 {
		return nil
	}
	if fl.instead != best || best.peer().last > fl.proofSince {
		fl.instead, fl.proof, fl.proofSince = best, 0, ref.Number
	}
	switch {
	case evidence&matchingRPC != 0:
		fl.proof += replaceReply
	case fl.proof == 0 || p.PSN != fl.proofPSN:
		fl.proof, fl.proofPSN = fl.proof+replaceExact, p.PSN
	}
	if fl.proof < replaceEnough || evidence&matchingRPC == 0 {
		return nil
	}
	fl.instead = nil
	return best
}

// misnamed looks for a flow without a peer that p, a packet of fl, answers, if nothing has come from the queue pair
// that the setup named as the peer of fl. Then the setup has named a false one: what is sent decides. The flow must have begun
// after the setup, since clients send calls again on another connection with the same XID.
func (x *pairing) misnamed(fl *flow, p *Packet) (best *flow) {
	ties := 0
	setup := max(fl.c.Setup[0].Frame.Number, fl.c.Setup[1].Frame.Number)
	h := x.unpaired[addrPair{fl.key.dst, fl.key.src, fl.key.tenant}]
	for n := 0; h != nil && n < maxUnpaired; h, n = h.older, n+1 {
		if h.c == fl.c || h.c.closed || h.c.set() || h.c.Fabric != fl.c.Fabric || h.c.First.Number < setup || x.evidence(fl, h, p)&matchingRPC == 0 {
			continue
		}
		best = h
		ties++
	}
	if ties != 1 {
		return nil
	}
	return best
}

// inherit puts next in the place of g's peer. What was called goes on on the same
// connection, which has another queue pair from now on.
func (t *Tracker) inherit(g, next *flow, ref rdma.Ref) {
	c := g.c
	old := c.flows[g.side.Other()]
	t.messages.settleGaps(old)
	t.messages.release(old)
	t.unlist(old)
	sent := c.Sent[old.side]
	t.account.add(c, -flowSize)
	c.flows[old.side] = nil
	t.pairing.dropPaired(g)
	t.pairing.addUnpaired(g)
	// What lies between the numbers of two queue pairs was not lost.
	if g.acked < g.head {
		first := g.request(g.acked).start
		if len(g.sends) == 0 || psnDiff(g.sends[0].start, first) >= 0 {
			g.missing.before(psnAdd(first, psnMask))
			g.headless.before(psnAdd(first, psnMask))
		}
	}
	g.respMissing.reset()
	t.account.sets(g)
	g.refused, g.ended, g.copied, g.respCopied = false, false, false, false
	t.join(g, next)
	n := &next.c.Sent[next.side]
	n.Add(&sent)
	c = next.c
	c.Sent[g.side].Resyncs++
	t.h.Event(c.Connection, g.side, rdma.EventResync, g.next, ref)
}
