package pcapfilter

import (
	"net/netip"

	"golang.org/x/net/bpf"
)

// node is a part of an expression: code that goes to t or f.
type node interface {
	gen(c *compiler, t, f label)
}

type (
	and  struct{ l, r node }
	or   struct{ l, r node }
	not  struct{ n node }
	pass struct{} // holds always
)

func (n and) gen(c *compiler, t, f label) {
	next := c.label()
	n.l.gen(c, next, f)
	c.place(next)
	n.r.gen(c, t, f)
}

func (n or) gen(c *compiler, t, f label) {
	next := c.label()
	n.l.gen(c, t, next)
	c.place(next)
	n.r.gen(c, t, f)
}

func (n not) gen(c *compiler, t, f label) { n.n.gen(c, f, t) }

func (pass) gen(c *compiler, t, _ label) { c.jump(t) }

// etherType holds for frames of a protocol, whatever tags they have.
type etherType uint16

func (n etherType) gen(c *compiler, t, f label) {
	c.load(slotType)
	c.test(bpf.JumpEqual, uint32(n), t, f)
}

// ipProto holds for packets of IP or IPv6 with a protocol above.
type ipProto uint8

func (n ipProto) gen(c *compiler, t, f label) {
	c.load(slotProto)
	c.test(bpf.JumpEqual, uint32(n), t, f)
}

// laterFragment holds for fragments but the first.
type laterFragment struct{}

func (laterFragment) gen(c *compiler, t, f label) {
	c.load(slotLater)
	c.test(bpf.JumpEqual, 0, f, t)
}

// clearMACsec holds for MACsec frames that are neither encrypted nor changed
// (IEEE 802.1AE section 9.5: the bits E and C of the tag control information).
type clearMACsec struct{}

func (clearMACsec) gen(c *compiler, t, f label) {
	c.index(slotL3)
	c.emit(bpf.LoadIndirect{Off: c.base, Size: 1})
	c.test(bpf.JumpBitsSet, 0x0c, f, t)
}

// vlan holds for tagged frames; id -1 takes any tag.
type vlan struct{ id int }

func (n vlan) gen(c *compiler, t, f label) {
	c.load(slotVLAN)
	if n.id < 0 {
		c.test(bpf.JumpEqual, noVLAN, f, t)
		return
	}
	c.test(bpf.JumpEqual, uint32(n.id), t, f)
}

// direction says which of two addresses or ports is meant.
type direction uint8

const (
	either direction = iota
	source
	destination
	both
)

// sides generates tests of a source and of a destination.
func (d direction) sides(c *compiler, t, f label, src, dst func(t, f label)) {
	next := c.label()
	switch d {
	case source:
		src(t, f)
		return
	case destination:
		dst(t, f)
		return
	case either:
		src(t, next)
	case both:
		src(next, f)
	}
	c.place(next)
	dst(t, f)
}

// ports holds for TCP, UDP and SCTP with a port in a range.
type ports struct {
	dir    direction
	lo, hi uint16
}

func (n ports) gen(c *compiler, t, f label) {
	// The rest of a packet that was fragmented has no ports.
	first := c.label()
	c.load(slotLater)
	c.test(bpf.JumpEqual, 0, first, f)
	c.place(first)
	known := c.label()
	c.load(slotProto)
	for _, p := range []ipProto{protoTCP, protoUDP} {
		next := c.label()
		c.test(bpf.JumpEqual, uint32(p), known, next)
		c.place(next)
	}
	c.test(bpf.JumpEqual, protoSCTP, known, f)
	c.place(known)
	c.index(slotL4)
	one := func(off uint32) func(t, f label) {
		return func(t, f label) {
			c.emit(bpf.LoadIndirect{Off: c.base + off, Size: 2})
			if n.lo == n.hi {
				c.test(bpf.JumpEqual, uint32(n.lo), t, f)
				return
			}
			low := c.label()
			c.test(bpf.JumpGreaterOrEqual, uint32(n.lo), low, f)
			c.place(low)
			c.test(bpf.JumpGreaterThan, uint32(n.hi), f, t)
		}
	}
	n.dir.sides(c, t, f, one(0), one(2))
}

// network holds for packets from or to the addresses of a prefix: a host, if
// it has all bits.
type network struct {
	dir    direction
	prefix netip.Prefix
}

func (n network) gen(c *compiler, t, f label) {
	addr := n.prefix.Masked().Addr()
	if addr.Is4() {
		word := addr.As4()
		one := func(off uint32) func(t, f label) {
			return func(t, f label) { c.words(off, word[:], n.prefix.Bits(), t, f) }
		}
		ip, arp, noIP, noARP := c.label(), c.label(), c.label(), c.label()
		c.load(slotType)
		c.test(bpf.JumpEqual, typeIPv4, ip, noIP)
		c.place(noIP)
		c.test(bpf.JumpEqual, typeARP, arp, noARP)
		c.place(noARP)
		c.test(bpf.JumpEqual, typeRARP, arp, f)
		c.place(ip)
		c.index(slotL3)
		n.dir.sides(c, t, f, one(12), one(16))
		c.place(arp) // RFC 826: sender and target of IPv4 over Ethernet
		c.index(slotL3)
		n.dir.sides(c, t, f, one(14), one(24))
		return
	}
	word := addr.As16()
	one := func(off uint32) func(t, f label) {
		return func(t, f label) { c.words(off, word[:], n.prefix.Bits(), t, f) }
	}
	ip := c.label()
	c.load(slotType)
	c.test(bpf.JumpEqual, typeIPv6, ip, f)
	c.place(ip)
	c.index(slotL3)
	n.dir.sides(c, t, f, one(8), one(24))
}

// words compares the first bits of bytes at X + off.
func (c *compiler) words(off uint32, want []byte, bits int, t, f label) {
	for i := 0; bits > 0; i += 4 {
		w := uint32(want[i])<<24 | uint32(want[i+1])<<16 | uint32(want[i+2])<<8 | uint32(want[i+3])
		c.emit(bpf.LoadIndirect{Off: c.base + off + uint32(i), Size: 4})
		if bits < 32 {
			c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(0) << (32 - bits)})
		}
		if bits -= 32; bits <= 0 {
			c.test(bpf.JumpEqual, w, t, f)
			return
		}
		next := c.label()
		c.test(bpf.JumpEqual, w, next, f)
		c.place(next)
	}
	c.jump(t) // a prefix of no bits
}

// station holds for frames from or to an Ethernet address.
type station struct {
	dir direction
	mac [6]byte
}

func (n station) gen(c *compiler, t, f label) {
	if c.frame != Ethernet {
		c.jump(f)
		return
	}
	one := func(off uint32) func(t, f label) {
		return func(t, f label) {
			m, next := n.mac, c.label()
			c.emit(bpf.LoadAbsolute{Off: off + 2, Size: 4})
			c.test(bpf.JumpEqual, uint32(m[2])<<24|uint32(m[3])<<16|uint32(m[4])<<8|uint32(m[5]), next, f)
			c.place(next)
			c.emit(bpf.LoadAbsolute{Off: off, Size: 2})
			c.test(bpf.JumpEqual, uint32(m[0])<<8|uint32(m[1]), t, f)
		}
	}
	n.dir.sides(c, t, f, one(6), one(0))
}

// group holds for frames to a group of Ethernet stations.
type group struct{}

func (group) gen(c *compiler, t, f label) {
	if c.frame != Ethernet {
		c.jump(f)
		return
	}
	c.emit(bpf.LoadAbsolute{Off: 0, Size: 1})
	c.test(bpf.JumpBitsSet, 1, t, f)
}

// relation compares a value with a constant.
type relation struct {
	l    value
	cond bpf.JumpTest
	r    uint32
}

func (n relation) gen(c *compiler, t, f label) {
	n.l.gen(c, f)
	c.test(n.cond, n.r, t, f)
}

// value leaves a number in A. It goes to f if the packet has no such number.
type value struct {
	of   string // layer of bytes, or "len"
	off  uint32
	size int
	ops  []bpf.ALUOpConstant
}

func (v value) gen(c *compiler, f label) {
	need := func(slot int, want ...uint32) {
		ok := c.label()
		c.load(slot)
		for i, w := range want {
			next := c.label()
			if i == len(want)-1 {
				next = f
			}
			c.test(bpf.JumpEqual, w, ok, next)
			if next != f {
				c.place(next)
			}
		}
		c.place(ok)
	}
	upper := func(p uint32) {
		need(slotLater, 0)
		need(slotProto, p)
		c.index(slotL4)
		c.emit(bpf.LoadIndirect{Off: c.base + v.off, Size: v.size})
	}
	switch v.of {
	case "len":
		c.emit(bpf.LoadExtension{Num: bpf.ExtLen})
	case "ether":
		if c.frame != Ethernet {
			c.jump(f)
			return
		}
		c.emit(bpf.LoadAbsolute{Off: v.off, Size: v.size})
	case "ip", "ip6", "arp":
		need(slotType, map[string]uint32{"ip": typeIPv4, "ip6": typeIPv6, "arp": typeARP}[v.of])
		c.index(slotL3)
		c.emit(bpf.LoadIndirect{Off: c.base + v.off, Size: v.size})
	case "tcp":
		upper(protoTCP)
	case "udp":
		upper(protoUDP)
	case "sctp":
		upper(protoSCTP)
	case "icmp":
		upper(protoICMP)
	case "icmp6":
		upper(protoICMPv6)
	}
	for _, op := range v.ops {
		c.emit(op)
	}
}
