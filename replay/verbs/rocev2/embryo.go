package rocev2

import (
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/internal/halfopen"
	"github.com/rpcrdma/toolkit/replay/internal/unguessable"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// A listener that answers requests itself (verbs.Answerer) sends the REP at once and
// keeps an embryo: the data needed to make the connection when the RTU arrives. That is
// all that a flood of requests costs. No queue pair, timer, goroutine or receive exists
// before the peer has shown that it has received the REP: by the communication id in its
// RTU, or by a packet with the queue pair and the PSN of the REP. Nothing like SYN
// cookies can replace embryos: neither RTU nor packet repeats the contents of the REQ.

// earlyPackets and earlyBytes bound the packets that are kept until the consumer has
// accepted a confirmed connection. Without these packets, the first call of a peer would
// wait for the ACK timeout.
const (
	earlyPackets = 16
	earlyBytes   = 64 << 10
)

// embryo is a connection request that was answered but not confirmed.
type embryo struct {
	s                *socket
	l                *listener
	key              peerKey
	peer             netip.AddrPort
	tid              uint64
	local            uint32 // our communication id; the peer's is in key
	qpn, ownQPN      uint32
	psn, ownPSN      uint32 // of the first packet from us, and from the peer
	mtu              uint16
	ackTimeout       uint8
	resources, depth uint8 // as agreed, from our point of view
	asked            [2]uint8
	rnrRetries       uint8
	src              netip.AddrPort
	private          [reqPrivateMax]byte
	privateLen       uint8
}

// names reports whether a message of the peer refers to e.
func (e *embryo) names(s *socket, peer netip.AddrPort, msg *ibcm.Message) bool {
	return e.s == s && e.peer.Addr() == peer.Addr() && e.key.n == msg.LocalID
}

// halfOpen holds the embryos of a provider. The lock of the cm protects it.
type halfOpen struct {
	table     *halfopen.Table[*embryo]
	byID      map[uint32]*halfopen.Entry[*embryo] // by our communication id
	byRequest map[peerKey]*halfopen.Entry[*embryo]
	byQPN     map[uint32]*halfopen.Entry[*embryo] // by our queue pair
	logged    time.Time
}

func (h *halfOpen) init(limit int) {
	h.table = halfopen.New[*embryo](limit)
	h.byID = make(map[uint32]*halfopen.Entry[*embryo])
	h.byRequest = make(map[peerKey]*halfopen.Entry[*embryo])
	h.byQPN = make(map[uint32]*halfopen.Entry[*embryo])
}

func (h *halfOpen) add(e *embryo, now time.Time) (evicted bool) {
	entry, old := h.table.Add(e.peer.Addr(), e, now)
	h.forget(old)
	h.byID[e.local], h.byRequest[e.key], h.byQPN[e.ownQPN] = entry, entry, entry
	return old != nil
}

func (h *halfOpen) remove(entry *halfopen.Entry[*embryo]) {
	if entry != nil && h.table.Remove(entry) {
		h.forget(entry)
	}
}

// forget drops all references to an entry that has left the table.
func (h *halfOpen) forget(entry *halfopen.Entry[*embryo]) {
	if entry == nil {
		return
	}
	e := entry.Value
	delete(h.byID, e.local)
	delete(h.byRequest, e.key)
	delete(h.byQPN, e.ownQPN)
}

// expire forgets requests that arrived before limit, and returns how many.
func (h *halfOpen) expire(limit time.Time) (n int) {
	for o := h.table.Oldest(); o != nil && o.Since.Before(limit); o = h.table.Oldest() {
		h.remove(o)
		n++
	}
	return n
}

// answer answers a request with the parameters of its listener. mu is held.
func (m *cm) answer(s *socket, l *listener, peer netip.AddrPort, key peerKey, msg *ibcm.Message) {
	if m.closed {
		return
	}
	p, now := l.answers, time.Now()
	m.p.stats.Expired.Add(uint64(m.half.expire(now.Add(-m.p.opt.HalfOpenTime))))
	e := &embryo{
		s: s, l: l, key: key, peer: peer, tid: msg.TransactionID,
		local: m.newID(), qpn: msg.QPN, ownQPN: m.p.newQPN(), psn: msg.StartPSN, ownPSN: unguessable.PSN(),
		mtu: uint16(msg.PathMTU), ackTimeout: msg.AckTimeout,
		resources:  min(readDepth(p.ResponderResources), msg.InitiatorDepth),
		depth:      min(readDepth(p.InitiatorDepth), msg.ResponderResources),
		asked:      [2]uint8{msg.ResponderResources, msg.InitiatorDepth},
		rnrRetries: min(p.RNRRetryCount, 7),
		src:        netip.AddrPortFrom(msg.Src, msg.SrcPort),
	}
	e.privateLen = uint8(copy(e.private[:], msg.Private))
	if m.half.add(e, now) {
		m.p.stats.Evicted.Add(1)
		if now.Sub(m.half.logged) > time.Second {
			m.half.logged = now
			m.p.opt.logf("rocev2: more than %d connection requests are not confirmed by their senders; %d have been forgotten so far", m.p.opt.HalfOpen, m.p.stats.Evicted.Load())
		}
	}
	m.sendREP(e)
}

// sendREP sends the REP of an embryo, the same each time. There is no timer for it: a peer
// that has missed it retransmits the REQ, and a forged address receives no more messages
// than were sent in its name. mu is held.
func (m *cm) sendREP(e *embryo) {
	e.s.sendMAD(m.rep(&repFields{
		tid: e.tid, local: e.local, remote: e.key.n, qpn: e.ownQPN, psn: e.ownPSN,
		resources: e.resources, depth: e.depth, rnrRetries: e.rnrRetries, private: e.l.answers.PrivateData,
	}), e.peer)
}

// answerAgain answers the copy of a request. mu is held.
func (m *cm) answerAgain(s *socket, key peerKey) bool {
	entry := m.half.byRequest[key]
	if entry == nil || entry.Value.s != s {
		return false
	}
	m.sendREP(entry.Value)
	return true
}

// confirmed handles the RTU for an embryo. It reports false if there is none. mu is held.
func (m *cm) confirmed(s *socket, peer netip.AddrPort, msg *ibcm.Message) bool {
	entry := m.half.byID[msg.RemoteID]
	return entry != nil && entry.Value.names(s, peer, msg) && m.hatch(entry)
}

// hatch turns a confirmed embryo into a request for the consumer. It reports false if
// nobody listens any more. mu is held.
func (m *cm) hatch(entry *halfopen.Entry[*embryo]) bool {
	e := entry.Value
	l, s := e.l, e.s
	select {
	case <-l.closed:
		m.half.remove(entry)
		return false
	default:
	}
	if l.pending >= m.p.opt.Backlog {
		// The consumer does not keep up. Packets that the peer sends or retransmits
		// later will confirm the connection then.
		return true
	}
	m.half.remove(entry)
	id := m.addAs(s, e.peer, e.local)
	id.passive, id.guid, id.remote, id.qpn, id.ownQPN, id.tid = true, e.key.guid, e.key.n, e.qpn, e.ownQPN, e.tid
	id.state = cmReady
	m.requests[e.key], m.pairs[peerKey{e.key.addr, e.key.guid, e.qpn}], m.ready[e.ownQPN] = id, id, id
	id.request = &request{
		id: id, m: m, listener: l, tid: e.tid, local: netip.AddrPortFrom(s.local.Addr(), l.addr.Port()), remote: e.src,
		private: e.private[:e.privateLen], resources: e.asked[0], depth: e.asked[1],
		psn: e.psn, mtu: int(e.mtu), ackTimeout: e.ackTimeout, answered: e,
	}
	l.pending++
	id.timer.Reset(acceptLimit)
	l.push(id.request)
	return true
}

// endReady ends a confirmed connection that no consumer has accepted. mu is held.
func (m *cm) endReady(id *cmID) {
	id.request.listener.pending--
	id.request.early = nil
	delete(m.ready, id.ownQPN)
	m.startDisconnect(id)
}

// take makes the connection of a request that the listener has answered.
func (m *cm) take(r *request, p *verbs.Params) (*Conn, error) {
	id, e := r.id, r.answered
	c, err := newConn(id.s, p)
	if err != nil {
		return nil, err
	}
	c.local, c.remote, c.private = r.local, r.remote, r.private
	c.respRes, c.initDepth, c.rnrRetries = e.resources, e.depth, e.rnrRetries
	c.ackTimeout = ackTimeout(r.ackTimeout)
	c.qpn = e.ownQPN
	m.mu.Lock()
	if id.state != cmReady {
		m.mu.Unlock()
		c.Close() //nolint:errcheck // it never was
		return nil, verbs.ErrDisconnected
	}
	// From here on the socket finds the connection, and new packets wait until the
	// earlier ones have been handled.
	c.mu.Lock()
	if err := m.p.addConn(id.s, c); err != nil {
		c.mu.Unlock()
		m.endReady(id)
		m.mu.Unlock()
		c.Close() //nolint:errcheck // it never was
		return nil, err
	}
	early := r.early
	r.early = nil
	r.listener.pending--
	delete(m.ready, id.ownQPN)
	id.timer.Stop()
	id.state, id.conn = cmEstablished, c
	c.cm = id
	c.connectLocked(id.peer, id.qpn, r.psn, e.ownPSN, r.mtu)
	m.mu.Unlock()
	c.establish()
	now := time.Now()
	for _, b := range early {
		var pkt roce.Packet
		if roce.Decode(b, len(b), &pkt) {
			c.handle(&pkt, now)
		}
	}
	c.transmit()
	c.mu.Unlock()
	return c, nil
}

// early handles a packet for a queue pair that does not exist yet. It reports false if no
// embryo has that number. The number and the first PSN, 48 bits that only the REP
// contains, replace an RTU that was lost or overtaken.
func (s *socket) early(src netip.AddrPort, b []byte, index uint16) bool {
	m := &s.p.cm
	m.mu.Lock()
	defer m.mu.Unlock()
	n := s.pkt.DestQP
	entry, id := m.half.byQPN[n], m.ready[n]
	switch {
	case entry != nil:
		e := entry.Value
		if e.s != s || e.peer.Addr() != src.Addr() || s.pkt.PSN != e.ownPSN || !s.unconnected(src, b, index) || !m.hatch(entry) {
			return false
		}
		if id = m.ready[n]; id == nil {
			return false
		}
	case id == nil || id.s != s || id.peer.Addr() != src.Addr() || !s.unconnected(src, b, index):
		return false
	}
	r := id.request
	size := len(b)
	for _, p := range r.early {
		size += len(p)
	}
	if len(r.early) < earlyPackets && size <= earlyBytes {
		r.early = append(r.early, append([]byte(nil), b...))
	}
	return true
}

// unconnected is intact for a packet that belongs to no connection.
func (s *socket) unconnected(src netip.AddrPort, b []byte, index uint16) bool {
	var c icrc
	c.set(src, s.local)
	return s.intact(&c, src, b, index)
}
