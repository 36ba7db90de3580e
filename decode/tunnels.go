package decode

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/link"
)

const (
	// firstTunnelTap is the first number of capture points within tunnels, above those of interfaces and
	// files.
	firstTunnelTap = 0xff00
	// maxTunnelPairs bounds the pairs of hosts in tunnels that are remembered.
	maxTunnelPairs = 1 << 14
	// sightings is how many of the last packets are searched for a copy.
	sightings = 256
	// copyWithin is how far apart, in nanoseconds, two copies of a packet may be. The clocks of two merged captures may differ by
	// seconds.
	copyWithin = 60e9
	// headBytes is how much of a payload that was cut is compared: up to the transaction id of a management
	// datagram, behind the XID of a Send.
	headBytes = 36
	// recentHosts is how many pairs of hosts are found without a map.
	recentBits  = 6
	recentHosts = 1 << recentBits

	golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: multiplication with it mixes bits upwards
)

// tunnels tells to which capture point and to which tenant a frame out of a
// tunnel belongs.
//
// A mirror is a capture point of its own, and so is an overlay: a capture of
// "all interfaces" shows a packet bare and wrapped, and both are one packet.
// Equal addresses in different overlays are different hosts; but where the
// first packet between two hosts of an overlay has just been seen bare, with
// the same bytes, the overlay shows what the bare frames show. Only then do
// they share a tenant.
type tunnels struct {
	seen  bool // one has been: from then on all packets are examined
	taps  map[tunnelTap]uint16
	hosts map[tenantHosts]uint64
	last  [sightings]sighting
	at    int
	frame link.Frame

	// What was last found in taps and in hosts.
	lastTap tunnelTap
	tapOf   uint16 // 0: nothing
	recent  [recentHosts]recentPair
}

// recentPair is an entry of hosts, with the addresses in the order of a packet.
type recentPair struct {
	own, tenant uint64
	src, dst    netip.Addr // invalid: none
	key         tenantHosts
}

// tunnelTap identifies the packets of one capture point within tunnels.
type tunnelTap struct {
	tap    uint16
	tunnel link.TunnelType
	id     uint32
	tenant uint64
	source netip.Addr // of a mirror: the switch
}

// tenantHosts are two hosts in ascending order.
type tenantHosts struct {
	tenant    uint64
	low, high netip.Addr
}

// sighting is a packet that was seen not long ago.
type sighting struct {
	sum           print
	tenant, place uint64 // its own, and the one that stands for it
	low, high     netip.Addr
	time          int64
}

// print is what copies of a packet have in common.
type print struct {
	whole uint64 // of all that is compared; 0 if the packet was cut
	head  uint64 // of its beginning; 0 if less was captured
}

// equal reports whether two packets are copies, as far as they were captured.
func (a print) equal(b print) bool {
	if a.whole != 0 && b.whole != 0 {
		return a.whole == b.whole
	}
	return a.head != 0 && a.head == b.head
}

// begin starts looking for copies. before are the packets of the batch that precede the first tunnel.
func (t *tunnels) begin(before []capture.Packet) {
	t.seen = true
	t.taps, t.hosts = make(map[tunnelTap]uint16), make(map[tenantHosts]uint64)
	for i := max(0, len(before)-sightings); i < len(before); i++ {
		p := &before[i]
		t.bare(p)
	}
}

// bare is place for a packet without a Frame.
func (t *tunnels) bare(p *capture.Packet) (tap uint16, tenant uint64) {
	link.Decode(p.Link, p.Data, p.Length, &t.frame)
	return t.place(p, &t.frame)
}

// place returns the capture point and the tenant under which a packet is
// tracked.
func (t *tunnels) place(p *capture.Packet, f *link.Frame) (tap uint16, tenant uint64) {
	tap, own := p.Tap, f.Tenant()
	if len(f.Tunnels) > 0 {
		tap = t.tap(p.Tap, own, f)
	}
	if f.Proto == link.None || f.Proto == link.Fragment {
		return tap, own
	}
	sum := t.sum(f)
	h := &t.recent[recentSlot(f)]
	if h.src != f.Src || h.dst != f.Dst || h.own != own {
		*h = t.pair(own, f, sum, p.Time)
	}
	t.last[t.at] = sighting{sum, own, h.tenant, h.key.low, h.key.high, p.Time}
	t.at = (t.at + 1) % sightings
	return tap, h.tenant
}

// recentSlot is where two hosts are in recent.
func recentSlot(f *link.Frame) uint {
	if n := len(f.Net); n >= 8 { // of IPv4, both addresses; of others, a part of the second
		return uint(binary.LittleEndian.Uint64(f.Net[n-8:]) * golden >> (64 - recentBits))
	}
	return 0
}

// pair finds the tenant of two hosts. src and dst are valid if the answer will stay the same.
func (t *tunnels) pair(own uint64, f *link.Frame, sum print, now int64) recentPair {
	key := tenantHosts{own, f.Src, f.Dst}
	if f.Dst.Less(f.Src) {
		key.low, key.high = f.Dst, f.Src
	}
	tenant, known := t.hosts[key]
	if !known {
		tenant = own
		if s := t.copyOf(sum, &key, now); s != nil {
			tenant = s.place
		}
		if len(t.hosts) >= maxTunnelPairs {
			return recentPair{tenant: tenant, key: key}
		}
		t.hosts[key] = tenant
	}
	return recentPair{own, tenant, f.Src, f.Dst, key}
}

// tap numbers a capture point. All beyond the last number share it.
func (t *tunnels) tap(tap uint16, tenant uint64, f *link.Frame) uint16 {
	key := tunnelTap{tap: tap, tunnel: f.Outermost().Type, tenant: tenant}
	if m := f.Mirror(); m != nil {
		key.tunnel, key.id, key.source = m.Type, m.ID, m.Src
	}
	if t.tapOf != 0 && t.lastTap == key {
		return t.tapOf
	}
	n, ok := t.taps[key]
	if !ok {
		n = firstTunnelTap + uint16(min(len(t.taps), 0xff))
		if len(t.taps) >= 0x100 {
			return n
		}
		t.taps[key] = n
	}
	t.lastTap, t.tapOf = key, n
	return n
}

// copyOf looks for a packet with the same bytes, one of the two being bare and the other encapsulated.
func (t *tunnels) copyOf(sum print, key *tenantHosts, now int64) *sighting {
	for i := range t.last {
		s := &t.last[i]
		if now-s.time > copyWithin || s.time-now > copyWithin {
			continue
		}
		if s.sum.equal(sum) && s.tenant != key.tenant && (s.tenant == 0 || key.tenant == 0) && s.low == key.low && s.high == key.high {
			return s
		}
	}
	return nil
}

// sum covers what no router changes: ports, lengths, and both ends of the payload. One of two copies may be cut, or both
// at different places, as a snapshot length cuts them: then only their beginning is compared.
func (t *tunnels) sum(f *link.Frame) (p print) {
	const most = 128
	sum := uint64(f.SrcPort)<<48 | uint64(f.DstPort)<<32 | uint64(uint32(f.PayloadLen))
	if f.Proto == link.TCP {
		sum ^= (uint64(f.TCPSeq)<<32 | uint64(f.TCPAck)) * golden
	}
	n := len(f.Payload)
	if n < min(headBytes, f.PayloadLen) {
		return p
	}
	sum = wire.Sum64(sum, f.Payload[:min(n, headBytes)])
	p.head = max(1, sum)
	if n < f.PayloadLen {
		return p
	}
	if n > headBytes {
		sum = wire.Sum64(sum, f.Payload[headBytes:min(n, most)])
	}
	if n > most {
		sum = wire.Sum64(sum, f.Payload[max(most, n-most):])
	}
	p.whole = max(1, sum)
	return p
}
