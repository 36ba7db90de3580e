package decode

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// udpDemux handles RPC over UDP: one message per datagram (RFC 5531, section 4). MOUNT, NLM, NSM and rpcbind
// still use it.
type udpDemux struct {
	h       rdma.Handler
	numbers *rdma.Numbers
	conns   map[udpKey]*udpConn
	order   []*udpConn
	hand    int
	send    rdma.Send
	memory  *memory.Account
	evicted uint64
}

// udpConnSize is the memory of a pair of ports, with the copy of its description that goes with its
// transactions.
const udpConnSize = int(unsafe.Sizeof(udpConn{})+2*unsafe.Sizeof(rdma.Connection{})+unsafe.Sizeof(udpKey{})) + 3*8 + memory.MapEntry

func (u *udpDemux) used() int { return len(u.order) * udpConnSize }

// maxUDP is how many pairs of UDP ports are followed at once.
const maxUDP = 4096

type udpKey struct {
	src, dst netip.AddrPort
	tenant   uint64
}

type udpConn struct {
	*rdma.Connection
	key  udpKey // of the side that sent first
	tap  int32
	taps [2]rdma.TapFilter
	used bool
}

func (u *udpDemux) init(h rdma.Handler, numbers *rdma.Numbers, m *memory.Account) {
	u.h, u.numbers, u.conns, u.memory = h, numbers, make(map[udpKey]*udpConn), m
}

func (u *udpDemux) packet(ref rdma.Ref, tap uint16, tenant uint64, f *link.Frame) *rdma.Connection {
	padded := oncrpc.PlausibleDatagram(f.Payload, f.PayloadLen)
	if !padded && !oncrpc.Plausible(f.Payload, f.PayloadLen) {
		return nil
	}
	key := udpKey{netip.AddrPortFrom(f.Src, f.SrcPort), netip.AddrPortFrom(f.Dst, f.DstPort), tenant}
	side := rdma.Side(0)
	c := u.conns[key]
	if c == nil {
		if c = u.conns[udpKey{key.dst, key.src, tenant}]; c != nil {
			side = 1
		}
	}
	// A server may forget the padding of the last item: that is a reply if its call was seen.
	if !padded && (c == nil || !u.waits(c, side, f.Payload)) {
		return nil
	}
	if c == nil {
		c = u.begin(key, f, ref, int32(tap))
	}
	if !c.taps[side].Accept(int32(tap), c.tap, ref.Time) {
		return c.Connection
	}
	c.used = true
	c.Last = ref
	sent := &c.Sent[side]
	sent.Packets++
	sent.Bytes += uint64(f.PayloadLen)
	sent.Sends++
	c.Header = rdma.Header{Kind: rdma.HeaderUDP}
	// link.Decode goes by the IP packet if the UDP length is larger, or smaller than the header. One between leaves room for options (RFC 9868).
	if length := binary.BigEndian.Uint16(f.Transport[4:]); int(length) != f.PayloadLen+len(f.Transport) {
		u.h.Event(c.Connection, side, rdma.EventUDPLength, uint32(length), ref)
	}
	u.send = rdma.Send{
		From: side, Data: f.Payload, Length: f.PayloadLen, First: ref, Last: ref, Packets: 1,
	}
	u.h.Send(c.Connection, &u.send)
	return c.Connection
}

// waits reports whether the other side has sent a call that has the XID of b and no reply yet.
func (u *udpDemux) waits(c *udpConn, side rdma.Side, b []byte) bool {
	from, ok := u.h.FindCall(c.Connection, binary.BigEndian.Uint32(b))
	return ok && from != side && oncrpc.MsgType(binary.BigEndian.Uint32(b[4:])) == oncrpc.TypeReply
}

func (u *udpDemux) begin(key udpKey, f *link.Frame, ref rdma.Ref, tap int32) *udpConn {
	if len(u.order) >= maxUDP {
		u.evict(ref)
	}
	c := &udpConn{Connection: u.numbers.New(rdma.UDP, ref), key: key, tap: tap}
	c.Ends[0] = rdma.End{Addr: key.src.Addr(), Port: key.src.Port()}
	c.Ends[1] = rdma.End{Addr: key.dst.Addr(), Port: key.dst.Port()}
	c.Tenant = key.tenant
	if o := f.Outermost(); o != nil {
		c.Tunnel = rdma.Tunnel{Type: o.Type.String(), Version: o.Version, HasID: o.HasID, ID: o.ID}.From(0, o.Src, o.Dst)
	}
	c.taps[0].Follow(rdma.NoTap)
	c.taps[1].Follow(rdma.NoTap)
	u.conns[key] = c
	u.order = append(u.order, c)
	u.memory.Add(udpConnSize)
	return c
}

// evict drops a pair of ports that has not been used for a round of the clock.
func (u *udpDemux) evict(ref rdma.Ref) {
	for {
		u.hand = (u.hand + 1) % len(u.order)
		c := u.order[u.hand]
		if c.used {
			c.used = false
			continue
		}
		last := len(u.order) - 1
		u.order[u.hand] = u.order[last]
		u.order[last] = nil
		u.order = u.order[:last]
		delete(u.conns, c.key)
		u.memory.Add(-udpConnSize)
		u.evicted++
		if c.Terminated == "" {
			c.Terminated = "evicted: too many pairs of ports, or they hold too much memory"
		}
		u.h.Closed(c.Connection, ref)
		return
	}
}

// flush closes all pairs of ports in the order in which they were first seen.
func (u *udpDemux) flush(ref rdma.Ref) {
	slices.SortFunc(u.order, func(a, b *udpConn) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range u.order {
		u.h.Closed(c.Connection, ref)
		u.memory.Add(-udpConnSize)
	}
	u.order, u.conns = nil, nil
}
