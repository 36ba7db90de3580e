package rocev2

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/internal/unguessable"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

const (
	// acceptLimit is how long a connection request waits for the consumer's answer.
	// An MRA tells its sender to wait.
	acceptLimit    = 60 * time.Second
	acceptExponent = 24 // 68 s
	dreqTries      = 7
	// pastConnections is how many ended connections are remembered, so that a late
	// copy of their request is not taken for a new one.
	pastConnections = 1024
	protocolTCP     = 6 // RDMA_PS_TCP: the port space of rdma_cm's connections
)

// cmState is the state of a connection (IBTA volume 1, section 12.9).
type cmState uint8

const (
	cmIdle    cmState = iota
	cmReqSent         // active: REQ is out
	cmReqRcvd         // passive: the consumer has not answered yet
	cmRepSent         // passive: REP is out
	cmReady           // passive: answered by the listener and confirmed; the consumer has not taken it yet
	cmEstablished
	cmDreqSent
	cmGone
)

// cmID is a connection as connection management sees it.
type cmID struct {
	s             *socket
	peer          netip.AddrPort
	local, remote uint32 // communication ids
	passive       bool
	guid          uint64 // the peer's adapter
	qpn           uint32 // the peer's queue pair; 0 if it is not known yet
	ownQPN        uint32 // 0 if there is none yet
	state         cmState
	tid           uint64
	last          []byte // the message to retransmit: BTH through MAD
	rtu           []byte // answers a repeated REP
	rejection     []byte // answers a repeated REQ
	timer         *time.Timer
	tries         int
	wait          time.Duration
	conn          *Conn
	request       *request
	result        chan error    // the outcome of what was sent
	gone          chan struct{} // closed when the end is confirmed, or nobody waits for that
}

// peerKey identifies a request by its sender: an adapter, and its communication id or
// queue pair.
type peerKey struct {
	addr netip.Addr
	guid uint64
	n    uint32
}

// cm is the connection manager of a provider.
type cm struct {
	p *Provider

	mu        sync.Mutex
	ids       map[uint32]*cmID
	requests  map[peerKey]*cmID  // passive ones, by communication id
	pairs     map[peerKey]*cmID  // by queue pair
	past      map[peerKey][]byte // what answers a late copy of the request, or nothing
	pastRing  []peerKey
	pastNext  int
	listeners map[netip.AddrPort]*listener
	half      halfOpen
	ready     map[uint32]*cmID      // in cmReady, by our queue pair
	nextID    *unguessable.Sequence // of 32 bits
	psn       uint32
	closed    bool
}

func (m *cm) init(p *Provider) {
	m.p = p
	m.ids = make(map[uint32]*cmID)
	m.requests = make(map[peerKey]*cmID)
	m.pairs = make(map[peerKey]*cmID)
	m.past = make(map[peerKey][]byte)
	m.listeners = make(map[netip.AddrPort]*listener)
	m.ready = make(map[uint32]*cmID)
	m.half.init(p.opt.HalfOpen)
	m.nextID = unguessable.NewSequence(32)
}

// newID returns a communication id that is not in use. mu is held.
func (m *cm) newID() uint32 {
	for {
		if n := m.nextID.Next(); n != 0 && m.ids[n] == nil && m.half.byID[n] == nil {
			return n
		}
	}
}

// add adds a connection. mu is held.
func (m *cm) add(s *socket, peer netip.AddrPort) (*cmID, error) {
	if m.closed {
		return nil, verbs.ErrClosed
	}
	return m.addAs(s, peer, m.newID()), nil
}

// addAs is add with a communication id that was chosen before. mu is held.
func (m *cm) addAs(s *socket, peer netip.AddrPort, local uint32) *cmID {
	id := &cmID{s: s, peer: peer, local: local, result: make(chan error, 1), gone: make(chan struct{})}
	id.timer = time.AfterFunc(time.Hour, func() { m.expired(id) })
	id.timer.Stop()
	m.ids[id.local] = id
	return id
}

// remove forgets a connection. mu is held.
func (m *cm) remove(id *cmID) {
	if id.state == cmGone {
		return
	}
	switch id.state {
	case cmReqRcvd:
		id.request.listener.pending--
	case cmReady:
		id.request.listener.pending--
		id.request.early = nil
		delete(m.ready, id.ownQPN)
	}
	id.state = cmGone
	id.timer.Stop()
	delete(m.ids, id.local)
	if id.passive {
		k := peerKey{id.peer.Addr(), id.guid, id.remote}
		if m.requests[k] == id {
			delete(m.requests, k)
			m.remember(k, id.rejection)
		}
	}
	if k := (peerKey{id.peer.Addr(), id.guid, id.qpn}); m.pairs[k] == id {
		delete(m.pairs, k)
	}
	id.last, id.rtu, id.conn = nil, nil, nil
	close(id.gone)
}

func (m *cm) remember(k peerKey, answer []byte) {
	if len(m.pastRing) < pastConnections {
		m.pastRing = append(m.pastRing, k)
	} else {
		delete(m.past, m.pastRing[m.pastNext])
		m.pastRing[m.pastNext] = k
		m.pastNext = (m.pastNext + 1) % pastConnections
	}
	m.past[k] = answer
}

// packet begins a message. It returns the message from the BTH on, and the part after the
// header of the MAD, which has to be filled in. mu is held.
func (m *cm) packet(a ibcm.Attribute, tid uint64) (packet, data []byte) {
	m.psn = psnAdd(m.psn, 1)
	h := roce.Packet{
		Opcode: roce.UDSendOnly, PKey: roce.DefaultPKey, DestQP: 1, PSN: m.psn,
		DETH: roce.DETHFields{QKey: roce.GSIQKey, SrcQP: 1},
	}
	packet = h.AppendHeaders(make([]byte, 0, roce.BTHSize+roce.DETHSize+ibcm.MADSize))
	packet, mad := ibcm.Append(packet, a, tid)
	return packet, mad.Data()
}

// sendTimed sends a message that is retransmitted until it is answered. mu is held.
func (m *cm) sendTimed(id *cmID, packet []byte) {
	id.last, id.tries, id.wait = packet, 0, m.p.opt.CMTimeout
	id.timer.Reset(id.wait)
	id.s.sendMAD(packet, id.peer)
}

// answered ends retransmission. mu is held.
func (m *cm) answered(id *cmID) {
	id.timer.Stop()
	id.last = nil
}

func (id *cmID) finish(err error) {
	select {
	case id.result <- err:
	default:
	}
}

// expired is called when a message was not answered in time.
func (m *cm) expired(id *cmID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := maxCMRetries
	switch id.state {
	case cmReqSent:
	case cmReqRcvd:
		m.reject(id.s, id.peer, id.request.tid, id.local, id.remote, ibcm.RejectedREQ, ibcm.ReasonTimeout, nil)
		m.remove(id)
		return
	case cmReady:
		m.endReady(id)
		return
	case cmRepSent:
		select {
		case <-id.conn.established:
			id.state = cmEstablished
			m.answered(id)
			return
		default:
		}
	case cmDreqSent:
		limit = dreqTries
	default:
		return
	}
	if id.tries++; id.tries > limit {
		if id.state != cmDreqSent {
			m.p.opt.logf("rocev2: %v does not answer", id.peer)
			id.finish(errTimedOut)
		}
		m.remove(id)
		return
	}
	id.wait = min(2*id.wait, maxResponse)
	id.timer.Reset(id.wait)
	id.s.sendMAD(id.last, id.peer)
}

// dial sends a REQ and waits for the outcome.
func (m *cm) dial(ctx context.Context, c *Conn, remote netip.AddrPort, p *verbs.Params) error {
	s, opt := c.s, &m.p.opt
	peer := netip.AddrPortFrom(remote.Addr(), opt.PeerPort)
	c.local = netip.AddrPortFrom(s.local.Addr(), uint16(49152+rand.IntN(16384)))
	c.remote = remote
	c.respRes, c.initDepth = readDepth(p.ResponderResources), readDepth(p.InitiatorDepth)
	c.ackTimeout = ibcm.Timeout(opt.ackExponent())
	mtu := s.mtu
	if opt.MTU != 0 {
		mtu = min(mtu, opt.MTU)
	}
	psn := unguessable.PSN()
	c.responder.epsn, c.mtu = psn, uint32(mtu)
	if err := m.p.addConn(s, c); err != nil {
		return err
	}
	m.mu.Lock()
	id, err := m.add(s, peer)
	if err != nil {
		m.mu.Unlock()
		return err
	}
	id.conn, id.ownQPN = c, c.qpn
	c.setCM(id)
	id.state = cmReqSent
	id.tid = unguessable.Uint64()
	packet, data := m.packet(ibcm.AttributeREQ, id.tid)
	r := ibcm.REQ(data)
	r.SetLocalID(id.local)
	r.SetServiceID(ibcm.IPServiceID(protocolTCP, remote.Port()))
	r.SetLocalCAGUID(m.p.guid)
	r.SetLocalQPN(c.qpn)
	r.SetResponderResources(c.respRes)
	r.SetInitiatorDepth(c.initDepth)
	r.SetRemoteResponseTimeout(responseExponent)
	r.SetLocalResponseTimeout(responseExponent)
	r.SetTransport(ibcm.TransportRC)
	r.SetStartingPSN(psn)
	r.SetRetryCount(min(c.retries, 7))
	r.SetRNRRetryCount(c.rnrRetries)
	r.SetPKey(roce.DefaultPKey)
	r.SetPathMTU(ibcm.MTUCode(uint32(mtu)))
	r.SetMaxCMRetries(maxCMRetries)
	path := r.Primary()
	path.SetLIDs(0xffff, 0xffff)
	path.SetGIDs(s.local.Addr().WithZone(""), remote.Addr().WithZone(""))
	path.SetHopLimit(64)
	path.SetAckTimeout(opt.ackExponent())
	r.SetIP(netip.AddrPortFrom(c.local.Addr().WithZone(""), c.local.Port()), remote.Addr().WithZone(""), p.PrivateData)
	m.sendTimed(id, packet)
	m.mu.Unlock()

	select {
	case err := <-id.result:
		return err
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch id.state {
	case cmReqSent:
		// The peer finds the request by our GUID and communication id.
		m.reject(s, peer, id.tid, id.local, 0, ibcm.RejectedOther, ibcm.ReasonTimeout, nil)
		m.remove(id)
	case cmEstablished:
		m.startDisconnect(id)
	}
	return ctx.Err()
}

func readDepth(n uint8) uint8 {
	if n == 0 {
		n = defaultDepth
	}
	return min(n, maxDepth)
}

// reject sends a REJ, and returns it. mu is held.
func (m *cm) reject(s *socket, peer netip.AddrPort, tid uint64, local, remote uint32, what ibcm.Rejected, why ibcm.Reason, private []byte) []byte {
	packet, data := m.packet(ibcm.AttributeREJ, tid)
	r := ibcm.REJ(data)
	r.SetIDs(local, remote)
	r.SetRejected(what)
	r.SetReason(why)
	if why == ibcm.ReasonTimeout {
		var guid [8]byte
		for i := range guid {
			guid[i] = byte(m.p.guid >> (56 - 8*i))
		}
		r.SetInfo(guid[:])
	}
	r.SetPrivate(private)
	s.sendMAD(packet, peer)
	return packet
}

// disconnect tells the peer that a connection has ended. The channel is closed when the
// peer has confirmed that, or never will.
func (m *cm) disconnect(id *cmID) <-chan struct{} {
	if id == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch id.state {
	case cmRepSent, cmEstablished:
		m.startDisconnect(id)
	case cmReqSent, cmIdle:
		m.remove(id)
	}
	return id.gone
}

// startDisconnect sends a DREQ. mu is held.
func (m *cm) startDisconnect(id *cmID) {
	id.state = cmDreqSent
	id.conn = nil // the rest goes on without it
	packet, data := m.packet(ibcm.AttributeDREQ, unguessable.Uint64())
	d := ibcm.DREQ(data)
	d.SetIDs(id.local, id.remote)
	d.SetRemoteQPN(id.qpn)
	m.sendTimed(id, packet)
}

// close ends all connections, after giving peers some time to confirm.
func (m *cm) close() {
	m.mu.Lock()
	m.closed = true
	var wait []*cmID
	for _, id := range m.ids {
		switch id.state {
		case cmDreqSent:
			wait = append(wait, id)
		case cmReqRcvd:
			m.reject(id.s, id.peer, id.request.tid, id.local, id.remote, ibcm.RejectedREQ, ibcm.ReasonInvalidServiceID, nil)
			m.remove(id)
		case cmReady:
			m.endReady(id)
			wait = append(wait, id)
		}
	}
	m.half.init(1)
	for _, l := range m.listeners {
		l.end()
	}
	clear(m.listeners)
	m.mu.Unlock()
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for _, id := range wait {
		select {
		case <-id.gone:
			continue
		case <-timer.C:
		}
		break
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.ids {
		id.finish(verbs.ErrClosed)
		m.remove(id)
	}
}

// message handles a message of connection management.
func (m *cm) message(s *socket, src netip.AddrPort, msg *ibcm.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed && msg.Attribute != ibcm.AttributeDREP && msg.Attribute != ibcm.AttributeDREQ {
		return
	}
	peer := src
	if !m.p.opt.Symmetric {
		peer = netip.AddrPortFrom(src.Addr(), m.p.opt.PeerPort)
	}
	switch msg.Attribute {
	case ibcm.AttributeREQ:
		m.onREQ(s, peer, msg)
	case ibcm.AttributeREP:
		m.onREP(s, peer, msg)
	case ibcm.AttributeRTU:
		m.onRTU(s, peer, msg)
	case ibcm.AttributeREJ:
		m.onREJ(s, peer, msg)
	case ibcm.AttributeMRA:
		if id := m.find(s, peer, msg); id != nil || m.mrads(msg) != nil {
			if id == nil {
				id = m.mrads(msg)
			}
			if (id.state == cmReqSent || id.state == cmRepSent) && id.peer.Addr() == peer.Addr() {
				id.wait = min(ibcm.Timeout(ibcm.MRA(msg.Data).ServiceTimeout()), acceptLimit)
				id.timer.Reset(id.wait)
			}
		}
	case ibcm.AttributeDREQ:
		m.onDREQ(s, peer, msg)
	case ibcm.AttributeDREP:
		if id := m.find(s, peer, msg); id != nil && id.state == cmDreqSent {
			m.remove(id)
		}
	}
}

// mrads returns the request that an MRA refers to, whose remote communication id is not
// known yet.
func (m *cm) mrads(msg *ibcm.Message) *cmID {
	if id := m.ids[msg.RemoteID]; id != nil && id.state == cmReqSent && id.tid == msg.TransactionID {
		return id
	}
	return nil
}

func (m *cm) onRTU(s *socket, peer netip.AddrPort, msg *ibcm.Message) {
	if id := m.find(s, peer, msg); id != nil {
		if id.state == cmRepSent {
			id.state = cmEstablished
			m.answered(id)
			id.conn.establish()
		}
		return
	}
	if m.confirmed(s, peer, msg) {
		return
	}
	// The peer refers to a connection that we have forgotten, or never had. It is
	// told, so that it can connect again at once.
	m.reject(s, peer, msg.TransactionID, msg.RemoteID, msg.LocalID, ibcm.RejectedOther, ibcm.ReasonInvalidCommID, nil)
}

// find returns the connection that a message belongs to.
func (m *cm) find(s *socket, peer netip.AddrPort, msg *ibcm.Message) *cmID {
	id := m.ids[msg.RemoteID]
	if id == nil || id.s != s || id.peer.Addr() != peer.Addr() || id.remote != msg.LocalID {
		return nil
	}
	return id
}

func (m *cm) onREQ(s *socket, peer netip.AddrPort, msg *ibcm.Message) {
	r := ibcm.REQ(msg.Data)
	key := peerKey{peer.Addr(), r.LocalCAGUID(), msg.LocalID}
	if id := m.requests[key]; id != nil {
		switch id.state {
		case cmReqRcvd:
			packet, data := m.packet(ibcm.AttributeMRA, msg.TransactionID)
			a := ibcm.MRA(data)
			a.SetIDs(id.local, id.remote)
			a.SetReceived(ibcm.RejectedREQ)
			a.SetServiceTimeout(acceptExponent)
			s.sendMAD(packet, peer)
		case cmRepSent:
			s.sendMAD(id.last, peer)
		}
		return
	}
	if m.answerAgain(s, key) {
		return
	}
	if answer, ok := m.past[key]; ok {
		if answer != nil {
			s.sendMAD(answer, peer)
		}
		return
	}
	refuse := func(why ibcm.Reason) {
		m.p.opt.logf("rocev2: connection request from %v refused: %v", peer, why)
		m.reject(s, peer, msg.TransactionID, 0, msg.LocalID, ibcm.RejectedREQ, why, nil)
	}
	pair := peerKey{peer.Addr(), r.LocalCAGUID(), msg.QPN}
	if old := m.pairs[pair]; old != nil {
		// The peer has forgotten that connection.
		refuse(ibcm.ReasonStaleConnection)
		if c := old.conn; c != nil {
			m.startDisconnect(old)
			c.disconnected()
		}
		return
	}
	if msg.Transport != ibcm.TransportRC {
		refuse(ibcm.ReasonInvalidTransportType)
		return
	}
	path := r.Primary()
	if path.LocalGID().Unmap() != peer.Addr().WithZone("") || path.RemoteGID().Unmap() != s.local.Addr().WithZone("") {
		refuse(ibcm.ReasonInvalidGID)
		return
	}
	if msg.PathMTU == 0 || int(msg.PathMTU) > s.mtu {
		refuse(ibcm.ReasonInvalidMTU)
		return
	}
	protocol, port, ok := msg.ServiceID.IP()
	l := m.listeners[netip.AddrPortFrom(s.local.Addr(), port)]
	if l == nil {
		any4 := netip.IPv6Unspecified()
		if s.local.Addr().Is4() {
			any4 = netip.IPv4Unspecified()
		}
		if l = m.listeners[netip.AddrPortFrom(any4, port)]; l == nil {
			l = m.listeners[netip.AddrPortFrom(netip.IPv6Unspecified(), port)]
		}
	}
	if !ok || protocol != protocolTCP || l == nil {
		refuse(ibcm.ReasonInvalidServiceID)
		return
	}
	if !msg.IP {
		refuse(ibcm.ReasonUnsupported)
		return
	}
	if l.answers != nil {
		m.answer(s, l, peer, key, msg)
		return
	}
	if l.pending >= m.p.opt.Backlog {
		m.p.opt.logf("rocev2: connection request from %v dropped: %d others wait", peer, l.pending)
		return // it will be repeated
	}
	id, err := m.add(s, peer)
	if err != nil {
		return
	}
	id.passive, id.guid, id.remote, id.qpn, id.state = true, r.LocalCAGUID(), msg.LocalID, msg.QPN, cmReqRcvd
	m.requests[key], m.pairs[pair] = id, id
	id.request = &request{
		id: id, m: m, listener: l, tid: msg.TransactionID,
		local: netip.AddrPortFrom(s.local.Addr(), port), remote: netip.AddrPortFrom(msg.Src, msg.SrcPort),
		private: append([]byte(nil), msg.Private...), resources: msg.ResponderResources, depth: msg.InitiatorDepth,
		psn: msg.StartPSN, mtu: int(msg.PathMTU), ackTimeout: msg.AckTimeout,
	}
	l.pending++
	id.timer.Reset(acceptLimit)
	l.push(id.request)
}

func (m *cm) onREP(s *socket, peer netip.AddrPort, msg *ibcm.Message) {
	id := m.ids[msg.RemoteID]
	if id == nil || id.s != s || id.passive || id.peer.Addr() != peer.Addr() || id.state == cmReqSent && id.tid != msg.TransactionID {
		m.reject(s, peer, msg.TransactionID, msg.RemoteID, msg.LocalID, ibcm.RejectedREP, ibcm.ReasonInvalidCommID, nil)
		return
	}
	switch {
	case id.state == cmEstablished && id.remote == msg.LocalID:
		s.sendMAD(id.rtu, id.peer) // ours was lost
		return
	case id.state != cmReqSent:
		return
	}
	r := ibcm.REP(msg.Data)
	c := id.conn
	m.answered(id)
	id.peer = peer
	id.remote, id.guid, id.qpn = msg.LocalID, r.LocalCAGUID(), msg.QPN
	id.state = cmEstablished
	m.pairs[peerKey{peer.Addr(), id.guid, id.qpn}] = id
	c.initDepth = min(c.initDepth, msg.ResponderResources)
	c.respRes = min(c.respRes, msg.InitiatorDepth)
	c.private = append([]byte(nil), msg.Private...)
	c.connect(peer, msg.QPN, msg.StartPSN, c.responder.epsn, int(c.mtu))
	packet, data := m.packet(ibcm.AttributeRTU, id.tid)
	ibcm.RTU(data).SetIDs(id.local, id.remote)
	id.rtu = packet
	s.sendMAD(packet, peer)
	c.establish()
	id.finish(nil)
}

func (m *cm) onREJ(s *socket, peer netip.AddrPort, msg *ibcm.Message) {
	id := m.ids[msg.RemoteID]
	if msg.RemoteID == 0 && msg.Reason == ibcm.ReasonTimeout {
		// The sender of a REQ has given up before it knew us.
		var guid uint64
		for _, b := range ibcm.REJ(msg.Data).Info() {
			guid = guid<<8 | uint64(b)
		}
		key := peerKey{peer.Addr(), guid, msg.LocalID}
		id = m.requests[key]
		m.half.remove(m.half.byRequest[key])
	}
	if e := m.half.byID[msg.RemoteID]; e != nil && e.Value.names(s, peer, msg) {
		m.half.remove(e)
		return
	}
	if id == nil || id.s != s || id.peer.Addr() != peer.Addr() {
		return
	}
	if id.state == cmReqSent {
		// The peer has no communication id yet that could be compared.
		if id.tid != msg.TransactionID {
			return
		}
	} else if id.remote != msg.LocalID {
		return
	}
	switch id.state {
	case cmEstablished:
		// It has forgotten the connection, or never had it: see onRTU.
		if c := id.conn; c != nil && msg.Reason == ibcm.ReasonInvalidCommID {
			c.disconnected()
			m.remove(id)
		}
	case cmReady:
		m.remove(id)
	case cmReqSent, cmRepSent:
		id.finish(&verbs.RejectError{Reason: msg.Reason.String(), PrivateData: append([]byte(nil), msg.Private...)})
		m.remove(id)
	case cmReqRcvd:
		m.remove(id)
	}
}

func (m *cm) onDREQ(s *socket, peer netip.AddrPort, msg *ibcm.Message) {
	id := m.find(s, peer, msg)
	if id != nil && id.ownQPN != msg.QPN {
		return // not from the peer of the connection
	}
	// Otherwise it is always answered: the peer may end a connection that we have
	// forgotten.
	packet, data := m.packet(ibcm.AttributeDREP, msg.TransactionID)
	ibcm.DREP(data).SetIDs(msg.RemoteID, msg.LocalID)
	s.sendMAD(packet, peer)
	if id == nil {
		if e := m.half.byID[msg.RemoteID]; e != nil && e.Value.names(s, peer, msg) && e.Value.ownQPN == msg.QPN {
			m.half.remove(e)
		}
		return
	}
	switch id.state {
	case cmReady:
		m.remove(id)
	case cmRepSent, cmEstablished:
		if c := id.conn; c != nil {
			c.disconnected()
		}
		m.remove(id)
	case cmDreqSent:
		m.remove(id) // both sides disconnect at once
	}
}

// repFields are the fields in which the REPs of a provider differ.
type repFields struct {
	tid                          uint64
	local, remote, qpn, psn      uint32
	resources, depth, rnrRetries uint8
	private                      []byte
}

// rep makes a REP. mu is held.
func (m *cm) rep(f *repFields) []byte {
	packet, data := m.packet(ibcm.AttributeREP, f.tid)
	rep := ibcm.REP(data)
	rep.SetIDs(f.local, f.remote)
	rep.SetLocalQPN(f.qpn)
	rep.SetStartingPSN(f.psn)
	rep.SetResponderResources(f.resources)
	rep.SetInitiatorDepth(f.depth)
	rep.SetTargetAckDelay(15)
	rep.SetRNRRetryCount(f.rnrRetries)
	rep.SetLocalCAGUID(m.p.guid)
	rep.SetPrivate(f.private)
	return packet
}

// ackTimeout returns the ACK timeout that a peer asks for in its REQ. It can ask for hours;
// a dead connection must not hold resources for so long.
func ackTimeout(exponent uint8) time.Duration {
	if exponent == 0 {
		exponent = 19 // none was given: the default of rdma_cm
	}
	return min(ibcm.Timeout(exponent), maxResponse)
}

// accept answers a request with a REP and waits until the connection is ready.
func (m *cm) accept(ctx context.Context, r *request, p *verbs.Params) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.answered != nil {
		return m.take(r, p)
	}
	if len(p.PrivateData) > repPrivateMax {
		return nil, fmt.Errorf("rocev2: private data of %d bytes: a reply has room for %d", len(p.PrivateData), repPrivateMax)
	}
	id := r.id
	c, err := newConn(id.s, p)
	if err != nil {
		return nil, err
	}
	c.local, c.remote, c.private = r.local, r.remote, r.private
	c.respRes = min(readDepth(p.ResponderResources), r.depth)
	c.initDepth = min(readDepth(p.InitiatorDepth), r.resources)
	c.ackTimeout = ackTimeout(r.ackTimeout)
	psn := unguessable.PSN()
	if err := m.p.addConn(id.s, c); err != nil {
		return nil, err
	}
	m.mu.Lock()
	if id.state != cmReqRcvd {
		m.mu.Unlock()
		c.Close() //nolint:errcheck // it never was
		return nil, verbs.ErrDisconnected
	}
	r.listener.pending--
	id.state = cmRepSent
	id.conn, id.ownQPN = c, c.qpn
	c.setCM(id)
	c.connect(id.peer, id.qpn, r.psn, psn, r.mtu)
	m.sendTimed(id, m.rep(&repFields{
		tid: r.tid, local: id.local, remote: id.remote, qpn: c.qpn, psn: psn,
		resources: c.respRes, depth: c.initDepth, rnrRetries: c.rnrRetries, private: p.PrivateData,
	}))
	m.mu.Unlock()
	select {
	case <-c.established:
		m.mu.Lock()
		if id.state == cmRepSent {
			id.state = cmEstablished
			m.answered(id)
		}
		m.mu.Unlock()
		return c, nil
	case err = <-id.result:
	case <-ctx.Done():
		err = ctx.Err()
		m.mu.Lock()
		if id.state == cmRepSent {
			m.reject(id.s, id.peer, r.tid, id.local, id.remote, ibcm.RejectedOther, ibcm.ReasonTimeout, nil)
			m.remove(id)
		}
		m.mu.Unlock()
	}
	c.Close() //nolint:errcheck // it never was
	return nil, err
}
