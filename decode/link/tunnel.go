package link

import "net/netip"

// maxTunnels bounds the encapsulations that are removed from one frame. A mirror of an overlay in an underlay
// with labels has three or four.
const maxTunnels = 8

// TunnelType is a kind of encapsulation: a header that carries a whole frame or IP packet of another network,
// or marks one.
type TunnelType uint8

// Wrappings that Decode takes off.
const (
	NoTunnel   TunnelType = iota
	VXLAN                 // RFC 7348
	VXLANGPE              // draft-ietf-nvo3-vxlan-gpe
	GENEVE                // RFC 8926
	GRE                   // RFC 2784, 2890; over UDP RFC 8086
	NVGRE                 // RFC 7637
	PPTP                  // RFC 2637: GRE version 1
	ERSPAN                // draft-foschiano-erspan: types I, II and III
	TZSP                  // TaZmen Sniffer Protocol
	MPLS                  // RFC 3032, pseudowires RFC 4448; over UDP RFC 7510
	PPPoE                 // RFC 2516
	IPIP                  // RFC 2003, 2473, 4213
	NSH                   // RFC 8300
	CiscoMeta             // EtherType 0x8909
	MACsec                // IEEE 802.1AE
	PBB                   // IEEE 802.1ah
	IPoIB                 // RFC 4391, RFC 4755: IP in messages of InfiniBand
	VNTag                 // EtherType 0x8926: ports of virtual machines
	ETag                  // IEEE 802.1BR
	HSR                   // IEC 62439-3: rings
	Arista                // EtherType 0xd28b: a mirror's time
	TRILL                 // RFC 6325
	FabricPath            // EtherType 0x8903
	EtherIP               // RFC 3378
	GTP                   // 3GPP TS 29.281: GTP-U
	Unnamed               // a wrapping that Decode does not know: Tunnel.Within and Skipped say where the packet was found
)

var tunnelNames = [...]string{
	"", "vxlan", "vxlan-gpe", "geneve", "gre", "nvgre", "pptp", "erspan", "tzsp", "mpls", "pppoe", "ipip", "nsh",
	"cisco-metadata", "macsec", "pbb", "ipoib", "vn-tag", "e-tag", "hsr", "arista", "trill", "fabricpath", "etherip", "gtp", "unnamed",
}

// String is the name used in output and filters: "vxlan", "erspan", ….
func (t TunnelType) String() string {
	if int(t) < len(tunnelNames) {
		return tunnelNames[t]
	}
	return ""
}

// Mirror reports whether this type carries copies made by a switch, rather than the traffic of its own
// network.
func (t TunnelType) Mirror() bool { return t == ERSPAN || t == TZSP }

// separates reports whether equal addresses in tunnels of this type with different identifiers belong to
// different hosts. The MPLS label, the NSH service path and the tunnel endpoint of GTP do not separate hosts: they differ
// between the two directions of a connection.
func (t TunnelType) separates() bool {
	switch t {
	case VXLAN, VXLANGPE, GENEVE, NVGRE, GRE, PPPoE, PBB, IPoIB:
		return true
	}
	return false
}

// Tunnel is one wrapping of a frame.
type Tunnel struct {
	Type    TunnelType
	Version uint8 // ERSPAN: 1, 2 or 3 for the types I, II and III
	HasID   bool
	// Truncated means that the mirror cut the frame (ERSPAN: T).
	Truncated bool
	// ID is the VNI (VXLAN, GENEVE), VSID (NVGRE), key (GRE), call (PPTP),
	// session (ERSPAN, PPPoE), tunnel endpoint (GTP), bottom label (MPLS), service path (NSH), security
	// group tag (Cisco metadata), I-SID (PBB) or partition (IPoIB: P_Key without
	// the membership bit), if HasID is set.
	ID uint32
	// Src and Dst are the addresses of the tunnel's ends; invalid if no IP header precedes the encapsulation.
	Src, Dst netip.Addr
	// Clock is the switch's timestamp of an ERSPAN III frame in units of Granularity, with the upper 32 bits
	// from the platform's sub-header if it has them.
	Clock       uint64
	Granularity Granularity
	// Sequence counts the packets that the sender of a GRE or ERSPAN header has sent here (RFC 2890, section 2.2), if Sequenced is set.
	Sequence  uint32
	Sequenced bool
	// Within is what announced a wrapping of type Unnamed, and Skipped how many bytes of it precede the packet.
	Within  Unknown
	Skipped uint16
}

// Granularity is the unit of an ERSPAN III timestamp.
type Granularity uint8

// Units of Tunnel.Clock.
const (
	NoClock     Granularity = iota
	Clock100us              // 32 bits of 100 µs
	Clock100ns              // 32 bits of 100 ns
	ClockPTP                // seconds (upper 32 bits, if known) and nanoseconds of IEEE 1588
	ClockCustom             // a unit that only the switch knows
)

// enter starts the inner frame: the description of the outer one moves to f.Tunnels. It returns false if the
// nesting is too deep.
func (f *Frame) enter(t Tunnel) bool {
	if len(f.Tunnels) == maxTunnels {
		*f = Frame{Tunnels: f.Tunnels, Problem: ProblemManyTunnels, parts: f.parts}
		return false
	}
	t.Src, t.Dst = f.Src, f.Dst
	tunnels, parts := append(f.Tunnels, t), f.parts
	*f = Frame{}
	f.Tunnels, f.parts = tunnels, parts
	return true
}

// within is what follows the header of a tunnel, which is the first size bytes of data.
func (f *Frame) within(t Tunnel, size int, next header, data []byte, n int) (header, []byte, int) {
	if !f.enter(t) {
		return nil, nil, 0
	}
	if size > 0 {
		f.numbers(data[:size])
	}
	return next, data[size:], n - size
}

// Unwrap takes what is in front of an IP packet for a wrapping that Decode does not know. The packet begins at bytes into the payload.
func (f *Frame) Unwrap(at int) {
	t := Tunnel{Type: Unnamed, Within: f.Unknown.Kind(), Skipped: uint16(at)}
	if f.Proto == UDP {
		t.Within = Unknown{UDPLayer, uint32(f.DstPort)}
	}
	data, n := f.Payload[at:], f.PayloadLen-at
	if f.enter(t) {
		f.decode(decodeIP, data, n)
	}
}

// Tenant distinguishes equal addresses in different tunnels. It is 0 outside of all tunnels, and equal for
// frames whose tunnels have the same types and identifiers. Mirrors do not count, nor do the ends of the
// tunnels: an overlay has many, and a frame may take any.
func (f *Frame) Tenant() uint64 {
	if len(f.Tunnels) == 0 {
		return 0
	}
	var id uint64
	for i := range f.Tunnels {
		if t := &f.Tunnels[i]; t.HasID && t.Type.separates() {
			// The constant comes from Knuth's multiplicative hashing; nested tunnels must not cancel each
			// other out.
			id = id*0x9e3779b97f4a7c15 + uint64(t.Type)<<32 + uint64(t.ID)
		}
	}
	return id
}

// Outermost is the first of the frame's wrappings, or nil.
func (f *Frame) Outermost() *Tunnel {
	if len(f.Tunnels) == 0 {
		return nil
	}
	return &f.Tunnels[0]
}

// Mirror is the innermost encapsulation that a switch added to copy the frame, or nil.
func (f *Frame) Mirror() *Tunnel {
	for i := len(f.Tunnels) - 1; i >= 0; i-- {
		if f.Tunnels[i].Type.Mirror() {
			return &f.Tunnels[i]
		}
	}
	return nil
}
