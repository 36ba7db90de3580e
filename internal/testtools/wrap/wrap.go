// Package wrap puts captured Ethernet frames into the wrappings of tunnels and mirrors, so that tests can
// compare the decoding of a bare capture with that of a wrapped one.
package wrap

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
)

// Kind is one way to wrap a frame.
type Kind struct {
	Name string
	// Tunnel is what a decoder should report: Type, HasID, ID and Version.
	// Type is 0 where the wrapping is only a link type.
	Tunnel link.Tunnel
	Link   capture.LinkType
	// Outer says that the wrapping has IP addresses, see Ends.
	Outer bool
	// Ethernet says that the inner Ethernet header with its VLAN tags stays.
	Ethernet bool
	wrap     func(w *wrapper)
}

// Ends are the addresses of the tunnels' ends: the one at the side of the lower
// of the two inner addresses, and the other.
var Ends = [2]netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")}

var ends6 = [2]netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")}

// wrapper builds one frame from the inside out: headers are put before buf[at:].
type wrapper struct {
	etherType int
	ethernet  []byte // the original frame
	packet    []byte // what follows its Ethernet header and VLAN tags
	wire      int    // bytes of the original frame that were not captured
	reverse   bool   // from the higher address to the lower one
	ip6       bool
	buf       []byte
	count     uint32
	sequence  [2]uint32 // GRE: packets that each end has sent
}

// Wrapper wraps the frames of one capture. It is not safe for concurrent use.
type Wrapper struct {
	kind  Kind
	id    uint32
	w     wrapper
	frame link.Frame
}

// New makes a Wrapper. id replaces the identifier of Kind.Tunnel.
func New(k Kind, id uint32) *Wrapper { return &Wrapper{kind: k, id: id} }

// Frame wraps an Ethernet frame of which b was captured and that was length bytes long. The result is valid
// until the next call. A frame that cannot be wrapped in this way (ARP in IP) is returned unchanged, or with
// another link type, as a frame without content.
func (x *Wrapper) Frame(b []byte, length int) (frame []byte, wire int) {
	w := &x.w
	link.Decode(capture.LinkEthernet, b, uint32(length), &x.frame)
	at, etherType := 12, 0
	for len(b) >= at+2 {
		etherType = int(binary.BigEndian.Uint16(b[at:]))
		at += 2
		if etherType != 0x8100 && etherType != 0x88a8 {
			break
		}
		at += 2
	}
	w.etherType, w.ethernet, w.packet = etherType, b, b[min(at, len(b)):]
	w.wire = length - len(b)
	w.reverse = x.frame.Src.IsValid() && x.frame.Dst.Less(x.frame.Src)
	w.ip6 = etherType == 0x86dd
	w.buf = w.buf[:0]
	w.count++
	x.kind.wrap(w)
	return w.buf, len(w.buf) + w.wire
}

func (w *wrapper) front(h ...byte) {
	n := len(w.buf)
	w.buf = append(w.buf, h...)
	copy(w.buf[len(h):], w.buf[:n])
	copy(w.buf, h)
}

func (w *wrapper) whole()    { w.buf = append(w.buf, w.ethernet...) }
func (w *wrapper) contents() { w.buf = append(w.buf, w.packet...) }
func (w *wrapper) isIP() bool {
	return w.etherType == 0x0800 || w.etherType == 0x86dd
}

func u16(v int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }
func u32(v int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// length is the length of what has been built, with what was not captured; 0 if a field of 16 bits cannot
// hold it, as in frames that the stack will split.
func (w *wrapper) length(head int) int {
	n := head + len(w.buf) + w.wire
	if n > 0xffff {
		return 0
	}
	return n
}

func (w *wrapper) udp(port int) {
	h := append(u16(49152+int(w.count%1000)), u16(port)...)
	w.front(append(append(h, u16(w.length(8))...), 0, 0)...)
	w.ip4(17)
}

func (w *wrapper) ip4(proto int) {
	h := []byte{0x45, 0}
	h = append(h, u16(w.length(20))...)
	h = append(h, byte(w.count>>8), byte(w.count), 0x40, 0, 64, byte(proto), 0, 0)
	src, dst := Ends[0], Ends[1]
	if w.reverse {
		src, dst = dst, src
	}
	h = append(append(h, src.AsSlice()...), dst.AsSlice()...)
	var sum uint32
	for i := 0; i < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum+sum>>16))
	w.front(h...)
}

func (w *wrapper) ip6Header(proto int) {
	h := append([]byte{0x60, 0, 0, 0}, u16(w.length(0))...)
	h = append(h, byte(proto), 64)
	src, dst := ends6[0], ends6[1]
	if w.reverse {
		src, dst = dst, src
	}
	w.front(append(append(h, src.AsSlice()...), dst.AsSlice()...)...)
}

func (w *wrapper) ether(etherType int) {
	w.front(append([]byte{2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2}, u16(etherType)...)...)
}

func (w *wrapper) gre(flags, protocol, key int) {
	h := append(u16(flags), u16(protocol)...)
	if flags&0x8000 != 0 {
		h = append(h, 0, 0, 0, 0)
	}
	if flags&0x2000 != 0 {
		h = append(h, u32(key)...)
	}
	if flags&0x1000 != 0 {
		end := 0
		if w.reverse {
			end = 1
		}
		w.sequence[end]++ // RFC 2890, section 2.2: of one sender
		h = append(h, u32(int(w.sequence[end]))...)
	}
	w.front(h...)
	w.ip4(47)
	w.ether(0x0800)
}

func (w *wrapper) bare() { w.buf = append(w.buf[:0], w.ethernet...) }

// Kinds are all ways to wrap, in a fixed order; id is the identifier where there
// is one (of which ERSPAN takes 10 bits, PPPoE and Cisco metadata 16, MPLS 20
// and the rest 24).
func Kinds(id uint32) []Kind {
	return slices.Concat(vxlanKinds(id), geneveKinds(id), greKinds(id), erspanKinds(id), mplsKinds(id), otherKinds(id), linkKinds(id))
}

// numbered is a tunnel with an identifier.
func numbered(id uint32, t link.TunnelType) link.Tunnel {
	return link.Tunnel{Type: t, HasID: true, ID: id}
}

// vxlanOver wraps what inner has built into VXLAN or VXLAN-GPE.
func vxlanOver(id, port, flags, next int, inner func(*wrapper)) func(*wrapper) {
	return func(w *wrapper) {
		inner(w)
		w.front(append([]byte{byte(flags), 0, 0, byte(next)}, u32(id<<8)...)...)
		w.udp(port)
		w.ether(0x0800)
	}
}

// ipOr wraps IP packets with f, and leaves others alone.
func ipOr(f func(*wrapper)) func(*wrapper) {
	return func(w *wrapper) {
		if !w.isIP() {
			w.bare()
			return
		}
		w.contents()
		f(w)
	}
}

// vxlanKinds are VXLAN and VXLAN-GPE.
func vxlanKinds(id uint32) []Kind {
	n := int(id)
	return []Kind{
		{"vxlan", numbered(id, link.VXLAN), capture.LinkEthernet, true, true, vxlanOver(n, 4789, 8, 0, (*wrapper).whole)},
		{"vxlan-8472", numbered(id, link.VXLAN), capture.LinkEthernet, true, true, vxlanOver(n, 8472, 8, 0, (*wrapper).whole)},
		{"vxlan-gpe", numbered(id, link.VXLANGPE), capture.LinkEthernet, true, true, vxlanOver(n, 4790, 0xc, 3, (*wrapper).whole)},
		{"vxlan-gpe-ip", numbered(id, link.VXLANGPE), capture.LinkEthernet, true, false, func(w *wrapper) {
			if !w.isIP() {
				w.bare()
				return
			}
			next := 1
			if w.ip6 {
				next = 2
			}
			vxlanOver(n, 4790, 0xc, next, (*wrapper).contents)(w)
		}},
		{"vxlan-gpe-nsh", numbered(id, link.VXLANGPE), capture.LinkEthernet, true, true, vxlanOver(n, 4790, 0xc, 4, func(w *wrapper) {
			w.whole()
			w.nsh(3, 77)
		})},
	}
}

// geneveKinds are GENEVE with and without options.
func geneveKinds(id uint32) []Kind {
	n := int(id)
	return []Kind{
		{"geneve", numbered(id, link.GENEVE), capture.LinkEthernet, true, true, func(w *wrapper) {
			w.whole()
			h := append([]byte{0, 0, 0x65, 0x58}, u32(n<<8)...)
			w.front(h...)
			w.udp(6081)
			w.ether(0x0800)
		}},
		{"geneve-options", numbered(id, link.GENEVE), capture.LinkEthernet, true, true, func(w *wrapper) {
			w.whole()
			h := append([]byte{4, 0x40, 0x65, 0x58}, u32(n<<8)...)
			h = append(h, 1, 2, 0x80, 1, 0xde, 0xad, 0xbe, 0xef, 1, 3, 0, 1, 0, 0, 0, 1)
			w.front(h...)
			w.udp(6081)
			w.ether(0x0800)
		}},
	}
}

// greKinds are GRE with each of its fields, and NVGRE.
func greKinds(id uint32) []Kind {
	n := int(id)
	return []Kind{
		{"gre-ip", link.Tunnel{Type: link.GRE}, capture.LinkEthernet, true, false, func(w *wrapper) { w.contents(); w.gre(0, w.etherType, 0) }},
		{"gre-ethernet", link.Tunnel{Type: link.GRE}, capture.LinkEthernet, true, true, func(w *wrapper) { w.whole(); w.gre(0, 0x6558, 0) }},
		{"gre-key", numbered(id, link.GRE), capture.LinkEthernet, true, false, func(w *wrapper) { w.contents(); w.gre(0x2000, w.etherType, n) }},
		{"gre-sequence", link.Tunnel{Type: link.GRE, Sequenced: true}, capture.LinkEthernet, true, false, func(w *wrapper) { w.contents(); w.gre(0x1000, w.etherType, 0) }},
		{"gre-checksum", link.Tunnel{Type: link.GRE}, capture.LinkEthernet, true, true, func(w *wrapper) { w.whole(); w.gre(0x8000, 0x6558, 0) }},
		{"gre-all", link.Tunnel{Type: link.GRE, HasID: true, ID: id, Sequenced: true}, capture.LinkEthernet, true, true, func(w *wrapper) { w.whole(); w.gre(0xb000, 0x6558, n) }},
		{"nvgre", numbered(id, link.NVGRE), capture.LinkEthernet, true, true, func(w *wrapper) { w.whole(); w.gre(0x2000, 0x6558, n<<8|int(w.count&0xff)) }},
	}
}

// erspan puts the header of ERSPAN before a frame.
func (w *wrapper) erspan(head ...byte) {
	w.whole()
	w.front(head...)
}

// erspanKinds are the three types of ERSPAN.
func erspanKinds(id uint32) []Kind {
	n := int(id)
	return []Kind{
		{"erspan1", link.Tunnel{Type: link.ERSPAN, Version: 1}, capture.LinkEthernet, true, true, func(w *wrapper) { w.whole(); w.gre(0, 0x88be, 0) }},
		{"erspan2", link.Tunnel{Type: link.ERSPAN, Version: 2, HasID: true, ID: id & 0x3ff, Sequenced: true}, capture.LinkEthernet, true, true, func(w *wrapper) {
			w.erspan(append(u32(0x10000000|0x1800|n&0x3ff), 0, 0, 0, 7)...)
			w.gre(0x1000, 0x88be, 0)
		}},
		{"erspan3", link.Tunnel{Type: link.ERSPAN, Version: 3, HasID: true, ID: id & 0x3ff, Sequenced: true}, capture.LinkEthernet, true, true, func(w *wrapper) {
			w.erspan(append(append(u32(0x20000000|n&0x3ff), u32(int(w.count)*10)...), 0, 0, 0x80, 0x02)...)
			w.gre(0x1000, 0x22eb, 0)
		}},
		{"erspan3-platform", link.Tunnel{Type: link.ERSPAN, Version: 3, HasID: true, ID: id & 0x3ff, Sequenced: true}, capture.LinkEthernet, true, true, func(w *wrapper) {
			h := append(append(u32(0x20000000|n&0x3ff), u32(int(w.count)*10)...), 0, 0, 0x80, 0x05)
			w.erspan(append(append(h, u32(3<<26|5)...), u32(1000)...)...)
			w.gre(0x1000, 0x22eb, 0)
		}},
	}
}

// mplsKinds are MPLS in Ethernet and in UDP.
func mplsKinds(id uint32) []Kind {
	n := int(id)
	return []Kind{
		{"mpls", numbered(id, link.MPLS), capture.LinkEthernet, false, false, ipOr(func(w *wrapper) { w.mpls(n); w.ether(0x8847) })},
		{"mpls-control-word", numbered(id, link.MPLS), capture.LinkEthernet, false, true, func(w *wrapper) {
			w.whole()
			w.front(u32(int(w.count & 0xffff))...)
			w.mpls(n)
			w.ether(0x8847)
		}},
		{"mpls-ethernet", numbered(id, link.MPLS), capture.LinkEthernet, false, true, func(w *wrapper) { w.whole(); w.mpls(n); w.ether(0x8847) }},
		{"mpls-udp", numbered(id, link.MPLS), capture.LinkEthernet, true, false, ipOr(func(w *wrapper) { w.mpls(n); w.udp(6635); w.ether(0x0800) })},
	}
}

// otherKinds are the other wrappings within Ethernet.
func otherKinds(id uint32) []Kind {
	n := int(id)
	return []Kind{
		{"pppoe", link.Tunnel{Type: link.PPPoE, HasID: true, ID: id & 0xffff}, capture.LinkEthernet, false, false, func(w *wrapper) {
			w.contents()
			w.ppp()
			w.front(append(append([]byte{0x11, 0}, u16(n)...), u16(w.length(0))...)...)
			w.ether(0x8864)
		}},
		{"ip-in-ip", link.Tunnel{Type: link.IPIP}, capture.LinkEthernet, true, false, ipOr(func(w *wrapper) { w.ip4(w.proto()); w.ether(0x0800) })},
		{"ip-in-ip6", link.Tunnel{Type: link.IPIP}, capture.LinkEthernet, true, false, ipOr(func(w *wrapper) { w.ip6Header(w.proto()); w.ether(0x86dd) })},
		{"nsh", link.Tunnel{Type: link.NSH, HasID: true, ID: id}, capture.LinkEthernet, false, true, func(w *wrapper) { w.whole(); w.nsh(3, n); w.ether(0x894f) }},
		{"cisco-metadata", link.Tunnel{Type: link.CiscoMeta, HasID: true, ID: id & 0xffff}, capture.LinkEthernet, false, false, func(w *wrapper) {
			w.contents()
			w.front(append(append([]byte{1, 1, 0, 1}, u16(n)...), u16(w.etherType)...)...)
			w.ether(0x8909)
		}},
		{"tzsp", link.Tunnel{Type: link.TZSP}, capture.LinkEthernet, true, true, func(w *wrapper) {
			w.whole()
			w.front(1, 0, 0, 1, 0, 10, 1, 0xf0, 1)
			w.udp(37008)
			w.ether(0x0800)
		}},
		{"macsec", link.Tunnel{Type: link.MACsec}, capture.LinkEthernet, false, false, func(w *wrapper) {
			w.contents()
			h := append([]byte{0x20, 0}, u32(int(w.count))...)
			h = append(append(h, 2, 0, 0, 0, 1, 1, 0, 1), u16(w.etherType)...)
			w.front(h...)
			if w.wire == 0 {
				w.buf = append(w.buf, make([]byte, 16)...)
			} else {
				w.wire += 16
			}
			w.ether(0x88e5)
		}},
		{"vn-tag", link.Tunnel{Type: link.VNTag}, capture.LinkEthernet, false, true, func(w *wrapper) { w.tag(0x8926, 0x80, 5, 0, 9) }},
		{"e-tag", link.Tunnel{Type: link.ETag}, capture.LinkEthernet, false, true, func(w *wrapper) { w.tag(0x893f, 0, 0, 0, 7, 0, 0) }},
		{"hsr", link.Tunnel{Type: link.HSR}, capture.LinkEthernet, false, true, func(w *wrapper) { w.tag(0x892f, append(u16(w.length(4)&0xfff), u16(int(w.count))...)...) }},
		{"arista", link.Tunnel{Type: link.Arista}, capture.LinkEthernet, false, true, func(w *wrapper) {
			w.tag(0xd28b, append([]byte{0, 1, 0, 0x10, 0, 0, 0, 1}, u32(int(w.count))...)...)
		}},
		{"arista-48", link.Tunnel{Type: link.Arista}, capture.LinkEthernet, false, true, func(w *wrapper) {
			w.tag(0xd28b, append([]byte{0, 1, 1, 0x20, 0, 1}, u32(int(w.count))...)...)
		}},
		{"trill", link.Tunnel{Type: link.TRILL}, capture.LinkEthernet, false, true, func(w *wrapper) {
			w.whole()
			w.front(0, 0x54, 0, 2, 0, 1, 1, 2, 3, 4)
			w.ether(0x22f3)
		}},
		{"fabricpath", link.Tunnel{Type: link.FabricPath}, capture.LinkEthernet, false, true, func(w *wrapper) {
			w.whole()
			w.front(0, 0x60)
			w.ether(0x8903)
		}},
		{"etherip", link.Tunnel{Type: link.EtherIP}, capture.LinkEthernet, true, true, func(w *wrapper) {
			w.whole()
			w.front(0x30, 0)
			w.ip4(97)
			w.ether(0x0800)
		}},
		{"gtp", numbered(id, link.GTP), capture.LinkEthernet, true, false, ipOr(func(w *wrapper) { w.gtp(0x30, n) })},
		{"gtp-extended", numbered(id, link.GTP), capture.LinkEthernet, true, false, ipOr(func(w *wrapper) { w.gtp(0x34, n, 0, 0, 0, 0x85, 1, 0x10, 1, 0) })},
		{"pbb", numbered(id, link.PBB), capture.LinkEthernet, false, true, func(w *wrapper) { w.whole(); w.front(u32(n)...); w.ether(0x88e7) }},
	}
}

// linkKinds are link types other than Ethernet.
func linkKinds(id uint32) []Kind {
	n := int(id)
	return []Kind{
		{"nflog", link.Tunnel{}, capture.LinkNFLOG, false, false, func(w *wrapper) {
			w.contents()
			size := w.length(4)
			w.front(byte(size), byte(size>>8), 9, 0)
			family := byte(2)
			switch {
			case w.ip6:
				family = 10
			case !w.isIP():
				family = 3
			}
			w.front(family, 0, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 6, 0, 10, 0, 'x', 0, 0, 0)
		}},
		{"ppp", link.Tunnel{}, capture.LinkPPP, false, false, func(w *wrapper) { w.contents(); w.ppp(); w.front(0xff, 0x03) }},
		{"ppp-hdlc", link.Tunnel{}, capture.LinkPPPHDLC, false, false, func(w *wrapper) { w.contents(); w.front(append([]byte{0x0f, 0}, u16(w.etherType)...)...) }},
		{"ppi", link.Tunnel{}, capture.LinkPPI, false, true, func(w *wrapper) { w.whole(); w.front(0, 0, 12, 0, 1, 0, 0, 0, 0, 0, 0, 0) }},
		{"ipoib", link.Tunnel{}, capture.LinkIPoIB, false, false, func(w *wrapper) {
			w.contents()
			w.front(append(u16(w.etherType), 0, 0)...)
			w.front(make([]byte, 40)...)
		}},
		{"mpls-link", numbered(id, link.MPLS), capture.LinkMPLS, false, false, func(w *wrapper) {
			if w.isIP() {
				w.contents()
			} else {
				w.whole()
			}
			w.mpls(n)
		}},
	}
}

// tag puts a tag between the addresses of a frame and its EtherType.
func (w *wrapper) tag(etherType int, tag ...byte) {
	addresses := min(12, len(w.ethernet))
	w.buf = append(w.buf, w.ethernet[addresses:]...)
	w.front(append(u16(etherType), tag...)...)
	w.front(w.ethernet[:addresses]...)
}

// gtp puts a header of GTP-U before an IP packet, with what its flags announce.
func (w *wrapper) gtp(flags, id int, optional ...byte) {
	w.front(optional...)
	w.front(append(append([]byte{byte(flags), 0xff}, u16(w.length(0))...), u32(id)...)...)
	w.udp(2152)
	w.ether(0x0800)
}

func (w *wrapper) nsh(next byte, path int) {
	w.front(append([]byte{0x0f, 0xc6, 1, next}, append(u32(path<<8|255), make([]byte, 16)...)...)...)
}

func (w *wrapper) mpls(label int) {
	w.front(append(u32(16<<12|0xff), u32(label<<12|0x1ff)...)...)
}

func (w *wrapper) ppp() {
	protocol := 0x0021
	switch {
	case w.ip6:
		protocol = 0x0057
	case !w.isIP():
		protocol = 0xc021
	}
	w.front(u16(protocol)...)
}

func (w *wrapper) proto() int {
	if w.ip6 {
		return 41
	}
	return 4
}
