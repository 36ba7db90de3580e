package roce

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// maxUnpaired bounds how many unpaired flows between two addresses are examined: the newest.
const maxUnpaired = 128

const (
	// pairWindow is how far an acknowledged PSN may be from the newest request. Two flows that do not belong
	// together match by chance once in 2^24/pairWindow; more often if PSNs do not start at random.
	pairWindow = 1024
	// pairPatience is how many consecutive packets must match by their PSNs; an exact match counts as
	// exactWeight.
	pairPatience = 256
	exactWeight  = 16
	// soleAnswers is how many answers to the newest request are enough if no other flow matches at all. A join is provisional until
	// there are finalAnswers more, and ends if maxAmiss in a row answer something else. Each such end doubles the patience, up to maxParted times.
	soleAnswers  = 3
	finalAnswers = 13
	maxAmiss     = 4
	maxParted    = 8
	// alignAfter is how many copies of a flow without a peer are seen before its capture point is changed. A
	// pair is usually proven sooner.
	alignAfter = 16
)

// Kinds of evidence that two flows belong together.
const (
	samePort = 1 << iota // many drivers use one UDP source port for both directions
	matchingPSN
	exactPSN    // a response exactly where a message ends or a Read begins
	matchingRPC // a reply to a call, or an operation on offered memory
)

// pairing finds flows that go together.
type pairing struct {
	unpaired, paired map[addrPair]*flow // flows without a peer, and those with one: the newest
	h                rdma.Handler
	findMemory       func(c *rdma.Connection, handle uint32, offset uint64, length uint32) (rdma.Side, bool) // nil: nobody knows
}

// addUnpaired adds a flow to the chain of flows without a peer.
func (x *pairing) addUnpaired(fl *flow) {
	fl.unpaired = true
	chain(x.unpaired, fl)
}

func (x *pairing) dropUnpaired(fl *flow) {
	if fl.unpaired {
		unchain(x.unpaired, fl)
		fl.unpaired = false
	}
}

// addPaired puts a flow into the chain of those with a peer.
func (x *pairing) addPaired(fl *flow) {
	fl.paired = true
	chain(x.paired, fl)
}

func (x *pairing) dropPaired(fl *flow) {
	if fl.paired {
		unchain(x.paired, fl)
		fl.paired = false
	}
}

func (k *flowKey) pair() addrPair { return addrPair{k.src, k.dst, k.tenant} }

func chain(newest map[addrPair]*flow, fl *flow) {
	pair := fl.key.pair()
	fl.older, fl.newer = newest[pair], nil
	if fl.older != nil {
		fl.older.newer = fl
	}
	newest[pair] = fl
}

func unchain(newest map[addrPair]*flow, fl *flow) {
	if fl.older != nil {
		fl.older.newer = fl.newer
	}
	switch pair := fl.key.pair(); {
	case fl.newer != nil:
		fl.newer.older = fl.older
	case fl.older != nil:
		newest[pair] = fl.older
	default:
		delete(newest, pair)
	}
	fl.older, fl.newer = nil, nil
}

// match searches for the opposite flow of fl if the connection's setup was not captured. A reply to an XID
// that the other direction called, or an RDMA operation on memory that it offered, is proof. A response whose
// PSN the other direction has just used, or a request that continues what the other direction has
// acknowledged, may be chance: it has to happen several times, and counts only on connections without RPC. If
// several flows are equally likely, the next packets decide.
func (x *pairing) match(fl *flow, p *Packet) (best *flow, evidence int) {
	g := x.unpaired[addrPair{fl.key.dst, fl.key.src, fl.key.tenant}]
	if g == nil || fl.c.closed {
		return nil, 0
	}
	ties, fits := 0, 0
	for n := 0; g != nil && n < maxUnpaired; g, n = g.older, n+1 {
		if g == fl || g.c == fl.c || g.c.closed || g.c.Fabric != fl.c.Fabric || g.c.precedes(fl.c) || fl.c.precedes(g.c) {
			continue
		}
		e := x.evidence(fl, g, p)
		if e != 0 {
			fits++
		}
		switch {
		case e > evidence:
			best, evidence, ties = g, e, 0
		case e == evidence:
			ties++
		}
	}
	if best == nil && p.Opcode.IsResponse() {
		fl.suspect, fl.exact = nil, -pairPatience // it answers something else
	}
	if best == nil || ties > 0 || evidence < matchingRPC && !fl.matched(best, p, evidence&exactPSN != 0, fits == 1) {
		return nil, 0
	}
	return best, evidence
}

// pair joins fl with its opposite flow, if that is known now.
func (t *Tracker) pair(fl *flow, p *Packet) bool {
	best, evidence := t.pairing.match(fl, p)
	if best == nil {
		return false
	}
	fl.suspect = nil
	t.join(best, fl)
	if evidence < matchingRPC {
		fl.c.provisional = finalAnswers
	}
	return true
}

// matched notes that g matches a packet of fl by its PSN; alone says that no other flow does. It reports whether that is proof.
func (fl *flow) matched(g *flow, p *Packet, exact, alone bool) bool {
	if fl.rpc || g.rpc {
		return false
	}
	if fl.suspect != g {
		if fl.suspect != nil {
			fl.exact = -pairPatience
		}
		fl.suspect, fl.matches, fl.sole = g, 0, 0
	}
	fl.matches++
	if exact && (fl.matches == 1 || p.PSN != fl.matchPSN) {
		fl.matches += exactWeight - 1
		fl.matchPSN = p.PSN
		fl.exact++
		if g.isNewest(p.PSN) {
			fl.sole++
		}
	}
	parted := max(fl.parted, g.parted)
	if !alone || parted > 0 {
		fl.sole, fl.exact = -pairPatience, -pairPatience
	}
	return fl.matches >= pairPatience<<parted || fl.sole >= soleAnswers
}

// joinRest joins, at the end of the capture, the halves of short connections: each answer fits the other half and no other flow, and two are exact
// and to its newest request, or three exact.
func (t *Tracker) joinRest(all []*connection) {
	claims := make(map[*flow]int) // how many flows answer each
	for _, c := range all {
		for _, fl := range c.flows {
			if fl != nil && fl.unpaired && fl.suspect != nil {
				claims[fl.suspect]++
			}
		}
	}
	for _, c := range all {
		for _, fl := range c.flows {
			if fl == nil || !fl.unpaired || fl.suspect == nil {
				continue
			}
			g := fl.suspect
			exact, newest := fl.exact, fl.sole
			if g.suspect == fl {
				exact, newest = exact+g.exact, newest+g.sole
			}
			if g.unpaired && claims[g] == 1 && min(fl.exact, g.exact) >= 0 && (g.suspect == nil || g.suspect == fl) && !fl.rpc && !g.rpc &&
				(newest >= soleAnswers-1 || exact >= soleAnswers) {
				t.join(g, fl)
			}
		}
	}
}

// confirm holds an answer of fl against a provisional join, which ends if several in a row answer neither the newest request of the peer nor
// exactly an older one. Where no other flow may be its peer, an answer in the middle of a request is no contradiction. It returns the flow to continue with.
func (t *Tracker) confirm(fl *flow, a *arrival) *flow {
	c, peer := fl.c, fl.peer()
	if peer == nil || !peer.started {
		return fl
	}
	newest, exact := peer.isNewest(a.p.PSN), peer.answers(a.p)
	switch {
	case newest != exact || peer.find(a.p.PSN) != nil && !exact && !t.pairing.crowded(fl):
	case exact:
		if c.amiss = 0; a.p.PSN != fl.matchPSN {
			fl.matchPSN = a.p.PSN
			c.provisional--
		}
	default:
		if c.amiss++; c.amiss < maxAmiss {
			break
		}
		if c.Terminated == "" {
			c.Terminated = takenOver
		}
		parted := min(fl.parted+1, maxParted)
		fl = t.anew(fl, a.ref, a.tap, a.fabric)
		fl.parted = parted
	}
	return fl
}

// crowded reports whether there are other flows between the hosts of fl, one of which may be its peer.
func (x *pairing) crowded(fl *flow) bool {
	for _, p := range [2]addrPair{{fl.key.src, fl.key.dst, fl.key.tenant}, {fl.key.dst, fl.key.src, fl.key.tenant}} {
		if g := x.paired[p]; x.unpaired[p] != nil || g != nil && (g.older != nil || g.newer != nil || g.c != fl.c) {
			return true
		}
	}
	return false
}

// align moves a flow without a peer to tap, which has shown a copy, if all peerless flows of the opposite
// direction are followed at tap and have copies from where this flow is followed. Both points then show both
// directions. With one direction taken from each point, and two clocks, replies precede their calls and
// nothing proves a pair. The flow that was seen later moves.
func (x *pairing) align(fl *flow, tap int32) {
	g := x.unpaired[addrPair{fl.key.dst, fl.key.src, fl.key.tenant}]
	if g == nil {
		return
	}
	for n := 0; g != nil; g, n = g.older, n+1 {
		if n == maxUnpaired || g.c == fl.c || g.tap.Tap() != tap || !g.tap.Copied(fl.tap.Tap()) || g.c.First.Number > fl.c.First.Number {
			return
		}
	}
	fl.tap.Follow(tap)
	fl.c.tap = tap
	fl.expectCopies()
}

// evidence is the evidence in a packet of fl that g is its opposite flow; 0 if only the port matches.
func (x *pairing) evidence(fl, g *flow, p *Packet) (e int) {
	if p.Opcode.IsSend() && p.Opcode.Starts() && len(p.Payload) >= 4 {
		from, ok := x.h.FindCall(g.c.Connection, binary.BigEndian.Uint32(p.Payload))
		if ok && from == g.side {
			e = matchingRPC
		}
	} else if p.Opcode.HasRETH() && x.findMemory != nil {
		side, ok := x.findMemory(g.c.Connection, p.RETH.RKey, p.RETH.VA, p.RETH.DMALen)
		if ok && side == g.side {
			e = matchingRPC
		}
	}
	switch {
	case p.Opcode.IsResponse():
		if !g.started {
			break
		}
		switch d := psnDiff(g.next, p.PSN); {
		case d > 0 && d <= pairWindow:
			e |= matchingPSN
			if g.answers(p) {
				e |= exactPSN
			}
		case p.Opcode.IsReadResponse() && d > -maxJump && d < maxJump:
			if r := g.find(p.PSN); r != nil && r.kind == readRequest {
				e |= matchingPSN
			}
		}
	case g.hasResp:
		if d := psnDiff(p.PSN, g.lastResp); d > 0 && d <= pairWindow {
			e |= matchingPSN
		}
	}
	if e != 0 && g.port == fl.port {
		e |= samePort
	}
	return e
}

// join makes two flows one connection: the one whose setup was captured, otherwise the one seen first.
func (t *Tracker) join(a, b *flow) {
	if b.c.First.Number < a.c.First.Number && !a.c.set() || b.c.set() {
		a, b = b, a
	}
	t.pairing.dropUnpaired(a)
	t.pairing.dropUnpaired(b)
	into, from := a.c, b.c
	flowBytes := from.size - connectionSize
	t.account.add(from, -from.size)
	t.clock.remove(from)
	t.account.add(into, flowBytes)
	for _, id := range from.comm {
		if t.byID[id] == from {
			delete(t.byID, id)
		}
	}
	if into.ID == 0 {
		into.ID = from.ID
	}
	was, side := b.side, a.side.Other()
	t.pairing.addPaired(a)
	t.pairing.addPaired(b)
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
	// Copies of one direction show that a second point sees both.
	if b.tap.Tap() != into.tap && (a.tap.Copied(b.tap.Tap()) || b.tap.Copied(into.tap)) {
		b.tap.Follow(into.tap)
		b.expectCopies()
	}
	from.MergedInto, from.Turned = into.Connection, side != was
	t.h.Merged(into.Connection, side, from.Connection, was)
	t.messages.watch.answeredBefore(a)
	t.messages.watch.answeredBefore(b)
}

// set reports whether the setup of a connection was captured.
func (c *connection) set() bool { return c.Setup[0].Seen() || c.Setup[1].Seen() }

// precedes reports whether packets of c came before the REQ of o: what a client sends again on a new connection has the XIDs of the old one.
func (c *connection) precedes(o *connection) bool {
	req := &o.Setup[0]
	return req.Message == rdma.SetupREQ && c.tap == o.tap && c.First.Number < req.Frame.Number
}

// moved reports whether a request on a joined flow evidently belongs to a flow without a peer: its
// destination queue pair has been connected to another one. It must match no call of the former connection.
func (x *pairing) moved(fl *flow, p *Packet) bool {
	g := x.unpaired[addrPair{fl.key.dst, fl.key.src, fl.key.tenant}]
	if g == nil {
		return false
	}
	if peer := fl.peer(); x.evidence(fl, peer, p) >= matchingRPC {
		return false
	}
	for n := 0; g != nil && n < maxUnpaired; g, n = g.older, n+1 {
		if g.c != fl.c && !g.c.closed && g.c.Fabric == fl.c.Fabric && x.evidence(fl, g, p) >= matchingRPC {
			return true
		}
	}
	return false
}
