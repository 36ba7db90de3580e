package simulate

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// Point is a capture point.
type Point uint8

// Capture points.
const (
	AtClient Point = iota // beside the first client
	AtSwitch              // between: what arrives at the switch
	AtServer
	Points = 3
)

var pointNames = [Points]string{"client", "switch", "server"}

func (p Point) String() string { return pointNames[p] }

// host is a client or the server, with its adapter.
//
//	adapter ──► tap ──► [lost?] ──► switch ──► queue ──► [lost?] ──► tap ──► adapter
type host struct {
	n       *network
	index   int // 0 for the server
	addr    netip.Addr
	ends    []*end
	turn    int // whose end is next to send
	manage  []*packet
	busy    bool // its adapter is sending
	woken   int64
	queue   hop // at the switch, towards it
	down    bool
	cnpSent map[*end]int64
}

// hop is a queue of the switch, first in, first out.
type hop struct {
	until  int64 // when it has sent what it holds
	burst  int64 // when others send the next
	bursts uint64
}

func (h *host) mac() []byte {
	if h == nil {
		return []byte{2, 0, 0, 0, 0xff, 1} // the switch
	}
	return []byte{2, 0, 0, 0, 0, byte(1 + h.index)}
}

// network is the simulation.
type network struct {
	engine
	*Config
	server  *host
	nfsd    *nfsd
	mounts  []*client
	stalls  []window
	broken  bool // the path, between switch and server
	clients []*host
	taps    [Points][]record
	lost    int
	resent  int
	marked  int
	filled  filled
}

const switchTime = 300 // nanoseconds that a switch needs besides

// wake lets the adapter of a host send what it has.
func (h *host) wake() {
	if h.busy || h.down {
		return
	}
	n := h.n
	if t := n.stalled(n.adapterStalls(h), n.now); t > n.now {
		h.later(t)
		return
	}
	p, next := h.next()
	if p == nil {
		if next > n.now {
			h.later(next)
		}
		return
	}
	if n.IWARP && !n.segment(p) {
		h.wake()
		return
	}
	h.busy = true
	done := n.now + p.onWire(n.LineRate)
	n.at(done, func() {
		h.busy = false
		n.leave(p)
		h.wake()
	})
}

// later wakes the host at a time.
func (h *host) later(t int64) {
	if h.woken > h.n.now && h.woken <= t {
		return
	}
	h.woken = t
	h.n.at(t, func() {
		if h.woken == t {
			h.woken = 0
		}
		h.wake()
	})
}

// next takes the next packet to be sent, or says when there may be one: management and notifications first,
// then the queue pairs in turn.
func (h *host) next() (*packet, int64) {
	if len(h.manage) > 0 {
		p := h.manage[0]
		h.manage = h.manage[1:]
		return p, 0
	}
	var soon int64
	for _, e := range h.ends {
		if len(e.notices) > 0 {
			p := e.notices[0]
			e.notices = e.notices[1:]
			return p, 0
		}
	}
	for i := range h.ends {
		e := h.ends[(h.turn+i)%len(h.ends)]
		if e.paced > h.n.now && (len(e.responses) == 0 || !e.responses[0].ack) {
			if e.hasWork() && (soon == 0 || e.paced < soon) {
				soon = e.paced
			}
			continue
		}
		if p := e.next(); p != nil {
			h.turn = (h.turn + i + 1) % len(h.ends)
			e.pace(p)
			return p, 0
		}
	}
	return nil, soon
}

// leave takes a packet from a host's link to the switch.
func (n *network) leave(p *packet) {
	client := p.src != n.server
	if client && p.src == n.clients[0] {
		n.record(AtClient, n.now, p)
	} else if !client {
		n.record(AtServer, n.now, p)
	}
	if n.loses(p, BeforeSwitch) || n.broken && !client {
		return
	}
	n.at(n.arrival(p, n.now, true), func() { n.forward(p) })
}

// forward queues a packet at the switch.
func (n *network) forward(p *packet) {
	n.record(AtSwitch, n.now, p)
	if n.broken && p.dst == n.server {
		return
	}
	n.mark(p)
	q := &p.dst.queue
	n.cross(p.dst)
	ready := n.now + switchTime
	start := n.stalled(n.switchStalls(p.dst), max(ready, q.until))
	if l := n.LinkFull; l != nil && l.Marks && n.chance((float64(start-ready)*float64(l.Rate)/8e9-markFrom)/(markAll-markFrom), "mark", p.id) {
		p.ce = true
		n.marked++
	}
	q.until = start + p.onWire(n.rate(p.dst))
	if n.loses(p, BehindSwitch) {
		return
	}
	n.at(n.arrival(p, q.until, false), func() { n.deliver(p) })
}

// deliver gives a packet to its host.
func (n *network) deliver(p *packet) {
	if p.dst == n.server {
		n.record(AtServer, n.now, p)
	} else if p.dst == n.clients[0] {
		n.record(AtClient, n.now, p)
	}
	if p.dst.down || n.loses(p, BehindTap) {
		return
	}
	if p.arrive != nil {
		p.arrive()
		return
	}
	if p.ce {
		p.dst.congested(p)
	}
	n.after(adapterTime, func() { p.to.take(p) })
}

// adapterTime is what an adapter needs to receive a packet.
const adapterTime = 250

// arrival is when a packet that leaves at a time has passed a link. Those of a queue pair stay in order.
func (n *network) arrival(p *packet, t int64, before bool) int64 {
	t += n.delay(p, before)
	if n.Jitter == 0 || p.to == nil {
		return t
	}
	side := 0
	if before {
		side = 1
	}
	r := stream(n.seed, "jitter", uint64(p.DestQP)<<32|uint64(p.PSN)<<2|uint64(side)<<1)
	last := &p.to.came[side]
	*last = max(t+int64(float64(n.Jitter)*r.ExpFloat64()), *last)
	return *last
}

// cross lets the bursts of others into a queue that have come until now.
func (n *network) cross(to *host) {
	x := n.CrossTraffic
	if x == nil || (to == n.server) == x.FromServer || n.now < n.Start {
		return
	}
	q := &to.queue
	for q.burst <= n.now {
		if q.bursts > 0 {
			q.until = max(q.until, q.burst) + n.around(x.For, 0.5, "burst for", q.bursts)
		} else {
			q.burst = n.Start
		}
		q.bursts++
		q.burst += n.around(x.Every, 0.5, "burst every", q.bursts)
	}
}

// delay is the time of a packet on the link before or behind the switch.
func (n *network) delay(p *packet, before bool) int64 {
	d := int64(n.Propagation)
	far := n.PathDelay
	if far == nil || p.to != nil && (far.Connection > 0 && p.to.c.index != far.Connection-1 || far.First && p.to.c.client != n.mounts[0]) {
		return d
	}
	share := far.Share // of the way on the client's link
	if before != (p.dst == n.server) {
		share = 1 - share
	}
	return d + int64(share*float64(far.OneWay))
}

// rate returns the rate of the link from the switch to a host, in bits a second.
func (n *network) rate(to *host) int64 {
	if n.LinkFull != nil {
		return n.LinkFull.Rate
	}
	return n.LineRate
}

// loses decides whether a packet is lost at a place.
func (n *network) loses(p *packet, at Place) bool {
	l := n.Loss
	if l == nil || at != l.Place || p.id == 0 || (p.src == n.server) != l.FromServer {
		return false
	}
	if l.Tail && (!p.last || p.id&attempts != 0) {
		return false
	}
	if !n.chance(l.Rate, "loss", p.id) {
		return false
	}
	n.lost++
	return true
}

// mark sets "congestion experienced", as a switch does to which other traffic leaves a share of the link: it
// marks the more, the longer the queue would be.
func (n *network) mark(p *packet) {
	c := n.Congestion
	if c == nil || p.id == 0 || (p.src == n.server) != c.FromServer {
		return
	}
	rate := c.Share * float64(n.LineRate) / 8e9 // bytes a nanosecond
	q := &n.filled
	q.bytes = max(0, q.bytes-float64(n.now-q.at)*rate) + float64(p.size())
	q.at = n.now
	if n.chance((q.bytes-markFrom)/(markAll-markFrom), "mark", p.id) {
		p.ce = true
		n.marked++
	}
}

// filled is a queue as other traffic leaves it.
type filled struct {
	at    int64
	bytes float64
}

// Bytes of a queue from which packets are marked, and all are.
const (
	markFrom = 20e3
	markAll  = 100e3
)

// congested answers a mark with a congestion notification, not more often than adapters do.
func (h *host) congested(p *packet) {
	n := h.n
	if last, ok := h.cnpSent[p.to]; ok && n.now-last < cnpInterval {
		return
	}
	h.cnpSent[p.to] = n.now
	q := p.to.packet(roce.CNP)
	q.ack = true
	q.BECN = true
	q.PayloadLen, q.Payload = 16, make([]byte, 16)
	p.to.notices = append(p.to.notices, q)
	h.wake()
}

// cnpInterval is the least time between two notifications of a queue pair.
const cnpInterval = 50_000

// record notes a packet at a capture point, unless the mirror loses it.
func (n *network) record(at Point, t int64, p *packet) {
	if g := n.CaptureGaps; g != nil && n.chance(g.Rate, "gap", uint64(len(n.taps[at]))<<8|uint64(at)^uint64(t)<<16) {
		return
	}
	n.taps[at] = append(n.taps[at], record{t, p.ce, p})
}
