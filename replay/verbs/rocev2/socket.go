package rocev2

import (
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/internal/busy"
)

// socket is one local address: a UDP socket, the queue pairs that use it, and
// the goroutine that reads it.
type socket struct {
	p     *Provider
	local netip.AddrPort
	udp   *udp
	mtu   int // the largest path MTU that the interface allows
	// Limits in bytes of what a connection may have in flight to the peer, and of
	// Read responses in flight to us.
	window, readWindow int
	// segmenting: the kernel splits datagrams. It is cleared when that fails.
	segmenting atomic.Bool
	link       *linkModel
	tap        tap
	fault      fault
	closed     atomic.Bool
	done       chan struct{}

	mu    sync.RWMutex
	conns map[uint32]*Conn

	// Used by the reading goroutine:
	wait    busy.Wait
	cur     *Conn // locked
	lazy    []*Conn
	now     time.Time
	pkt     roce.Packet
	madICRC icrc
}

func newSocket(p *Provider, addr netip.Addr) (*socket, error) {
	local := netip.AddrPortFrom(addr, p.opt.Port)
	u, err := openUDP(local, p.opt.Buffer, !p.opt.NoOffload)
	if err != nil {
		return nil, err
	}
	s := &socket{
		p: p, local: local, udp: u, mtu: interfaceMTU(addr),
		conns: make(map[uint32]*Conn), done: make(chan struct{}),
	}
	// The kernel counts its own overhead as well: at most as much again.
	if s.window = p.opt.Window; s.window <= 0 {
		s.window = min(max(u.buffer/8, 128<<10), 1<<20)
	}
	if s.readWindow = p.opt.ReadWindow; s.readWindow <= 0 {
		s.readWindow = u.buffer / 2
	}
	s.segmenting.Store(u.gso)
	s.tap.to = p.opt.Tap
	s.fault.opt = &p.opt
	if p.opt.Link.Delay > 0 || p.opt.Link.Bandwidth > 0 {
		s.link = newLinkModel(p.opt.Link, u)
	}
	go s.run()
	return s, nil
}

// interfaceMTU is the path MTU of the interface with an address, as rdma_cm
// chooses it: the largest that leaves 96 bytes for headers.
func interfaceMTU(addr netip.Addr) int {
	best := 1024
	list, err := net.Interfaces()
	if err != nil {
		return best
	}
	for i := range list {
		addrs, err := list[i].Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			ip, _ := netip.AddrFromSlice(n.IP)
			ones, _ := n.Mask.Size()
			if ip = ip.Unmap(); ip != addr.WithZone("") {
				// All of 127/8 is on the loopback interface.
				if !ip.IsLoopback() || !netip.PrefixFrom(ip, ones).Contains(addr) {
					continue
				}
			}
			return pathMTU(list[i].MTU)
		}
	}
	return best
}

func pathMTU(device int) int {
	mtu := roce.MaxMTU
	for mtu > 256 && mtu > device-96 {
		mtu >>= 1
	}
	return mtu
}

func (s *socket) close() {
	if s.closed.Swap(true) {
		return
	}
	if s.link != nil {
		s.link.close()
	}
	s.udp.close() //nolint:errcheck // nothing is lost
	<-s.done
}

func (s *socket) run() {
	defer close(s.done)
	for {
		n, err := s.receive()
		if err != nil {
			if s.closed.Load() {
				return
			}
			// Errors that the network reports (such as ECONNREFUSED) concern a
			// peer. Whatever the error is, do not spin.
			s.p.opt.logf("rocev2: %v: receive: %v", s.local, err)
			time.Sleep(time.Millisecond)
			continue
		}
		s.now = time.Now()
		for i := range n {
			b, size, src := s.udp.message(i)
			if b != nil {
				s.datagram(src, b, size)
			}
		}
		s.release()
		s.acknowledge()
	}
}

// receive waits for datagrams.
func (s *socket) receive() (int, error) {
	n, err := s.udp.recv(false)
	if n > 0 || err != nil {
		return n, err
	}
	s.wait.Begin()
	defer s.wait.End()
	for n == 0 && err == nil && s.wait.Again() {
		n, err = s.udp.recv(false)
	}
	if n == 0 && err == nil {
		n, err = s.udp.recv(true)
	}
	return n, err
}

// datagram splits a datagram that the kernel has merged.
func (s *socket) datagram(src netip.AddrPort, b []byte, size int) {
	for index := uint16(0); len(b) > 0; index++ {
		n := min(size, len(b))
		if s.p.opt.Incoming == nil {
			s.packet(src, b[:n:n], index)
		} else {
			s.fault.incoming(b[:n:n], func(p []byte) { s.packet(src, p, index) })
		}
		b = b[n:]
	}
}

// packet handles one packet, BTH through ICRC, the index-th that the kernel
// received as one.
func (s *socket) packet(src netip.AddrPort, b []byte, index uint16) {
	if len(b)&3 != 0 || !roce.Decode(b, len(b), &s.pkt) || s.pkt.PKey&0x7fff != roce.DefaultPKey&0x7fff {
		s.p.count(&s.p.stats.Malformed)
		return
	}
	if s.pkt.DestQP == 1 {
		s.release()
		s.mad(src, b, index)
		return
	}
	c := s.cur
	if c == nil || c.qpn != s.pkt.DestQP {
		s.release()
		c = s.conn(s.pkt.DestQP)
		if c == nil {
			if s.early(src, b, index) {
				return
			}
			if c = s.conn(s.pkt.DestQP); c == nil { // it may have been made meanwhile
				s.p.count(&s.p.stats.NoQP)
				return
			}
		}
		c.mu.Lock()
		s.cur = c
	}
	if src != c.inbound.src {
		if src.Addr() != c.peer.Addr() {
			s.p.count(&s.p.stats.NoQP)
			return
		}
		c.inbound.set(src, s.local)
	}
	if !s.intact(&c.inbound, src, b, index) {
		s.p.count(&s.p.stats.BadICRC)
		return
	}
	c.handle(&s.pkt, s.now)
}

func (s *socket) conn(qpn uint32) *Conn {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.conns[qpn]
}

// release unlocks the connection whose packets were handled, after sending what they
// have caused.
func (s *socket) release() {
	c := s.cur
	if c == nil {
		return
	}
	s.cur = nil
	if c.patient() {
		if !c.lazy {
			c.lazy = true
			s.lazy = append(s.lazy, c)
		}
		c.arm()
	} else {
		c.transmit()
	}
	c.mu.Unlock()
}

// acknowledge sends delayed acknowledgements. Goroutines that were woken by the
// acknowledged messages get a chance to answer first, so that one system call sends both.
func (s *socket) acknowledge() {
	if len(s.lazy) == 0 {
		return
	}
	runtime.Gosched()
	for i, c := range s.lazy {
		c.mu.Lock()
		c.lazy = false
		c.transmit()
		c.mu.Unlock()
		s.lazy[i] = nil
	}
	s.lazy = s.lazy[:0]
}

// intact checks the ICRC of a packet and shows the packet to the tap.
func (s *socket) intact(f *icrc, src netip.AddrPort, b []byte, index uint16) bool {
	id := index
	if s.p.opt.CheckICRC != ICRCOff {
		var ok bool
		if id, ok = f.check(b, index, s.p.opt.CheckICRC); !ok {
			return false
		}
	}
	if s.tap.on() {
		s.tap.packet(src, s.local, id, b)
	}
	return true
}

// mad handles a packet for queue pair 1.
func (s *socket) mad(src netip.AddrPort, b []byte, index uint16) {
	pkt := &s.pkt
	if pkt.Opcode != roce.UDSendOnly || pkt.DETH.QKey != roce.GSIQKey {
		s.p.count(&s.p.stats.Malformed)
		return
	}
	if src != s.madICRC.src {
		s.madICRC.set(src, s.local)
	}
	if !s.intact(&s.madICRC, src, b, index) {
		s.p.count(&s.p.stats.BadICRC)
		return
	}
	var m ibcm.Message
	if !ibcm.Decode(pkt.Payload, pkt.PayloadLen, &m) || len(m.Data) < ibcm.DataSize {
		s.p.count(&s.p.stats.Malformed)
		return
	}
	s.p.cm.message(s, src, &m)
}

// send sends a batch and returns how many of its packets were sent, or count as lost:
// fewer than all only if the socket is full.
func (s *socket) send(b *batch, dst netip.AddrPort) int {
	if s.tap.on() {
		s.tap.batch(b, s.local, dst)
	}
	if s.link != nil || s.p.opt.Outgoing != nil {
		return s.sendFlat(b, dst)
	}
	first := 0
	for first < len(b.messages) {
		n, err := s.udp.send(b, first, dst)
		first += n
		if err == nil {
			break
		}
		if full(err) {
			return b.messages[first].segment
		}
		if b.messages[first].segments > 1 && noOffload(err) {
			s.segmenting.Store(false)
			s.p.opt.logf("rocev2: %v: no segmentation offload to %v: %v", s.local, dst, err)
			b.split(first)
			continue
		}
		if s.closed.Load() {
			break
		}
		s.p.opt.logf("rocev2: %v: send to %v: %v", s.local, dst, err)
		first++ // as if lost
	}
	return len(b.segments)
}

// sendFlat sends packets one by one through the model of a network.
func (s *socket) sendFlat(b *batch, dst netip.AddrPort) int {
	var buf [roce.MaxMTU + 64]byte
	for i := range b.segments {
		if s.link != nil && s.link.full() {
			return i
		}
		s.flat(b.flatten(buf[:0], &b.segments[i]), dst)
	}
	return len(b.segments)
}

func (s *socket) flat(packet []byte, dst netip.AddrPort) {
	if s.p.opt.Outgoing == nil {
		s.flat1(packet, dst)
		return
	}
	s.fault.outgoing(packet, func(p []byte) { s.flat1(p, dst) })
}

func (s *socket) flat1(packet []byte, dst netip.AddrPort) {
	if s.link != nil {
		s.link.send(packet, dst)
		return
	}
	if err := s.udp.sendOne(packet, dst); err != nil && !s.closed.Load() {
		s.p.opt.logf("rocev2: %v: send to %v: %v", s.local, dst, err)
	}
}

// sendMAD sends a packet of queue pair 1, BTH through pad.
func (s *socket) sendMAD(packet []byte, dst netip.AddrPort) {
	var c icrc
	c.set(s.local, dst)
	b := newBatch(&c, false)
	h := b.header(roce.BTHSize)
	copy(h, packet)
	b.payload(packet[roce.BTHSize:])
	b.finish(kindAck, 0, 0, 0)
	s.send(b, dst)
	b.free()
}

// fault calls the hooks that model a bad network, one at a time for each direction.
type fault struct {
	opt     *Options
	out, in sync.Mutex
}

func (f *fault) outgoing(packet []byte, pass func([]byte)) {
	f.out.Lock()
	defer f.out.Unlock()
	f.opt.Outgoing(packet, pass)
}

func (f *fault) incoming(packet []byte, pass func([]byte)) {
	f.in.Lock()
	defer f.in.Unlock()
	f.opt.Incoming(packet, pass)
}
