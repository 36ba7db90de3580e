package pcapfilter

import (
	"errors"

	"golang.org/x/net/bpf"
)

// Frame says how the packets begin that a program sees.
type Frame uint8

const (
	// Ethernet frames, loopback included.
	Ethernet Frame = iota
	// Network packets: the kernel knows protocol and start of the network
	// header, of whatever link (linux/filter.h: SKF_AD_PROTOCOL, SKF_NET_OFF).
	Network
	// Mixed distinguishes the two by the type of the link (SKF_AD_HATYPE), for a socket on all interfaces.
	Mixed
)

// Options say for whom a program is made.
type Options struct {
	Frame Frame
	// Kernel lets the program ask for tags that the kernel has stripped. One
	// that is to run elsewhere must not.
	Kernel bool
	// Snap is what the program returns for a packet that matches: the number of bytes to keep. 0 means all.
	Snap uint32
	// DropEcho drops the packets that leave by a loopback interface: each comes in again. It needs Kernel.
	DropEcho bool
}

// Ethertypes and protocols.
const (
	typeIPv4   = 0x0800
	typeARP    = 0x0806
	typeRARP   = 0x8035
	typeIPv6   = 0x86dd
	typeRoCEv1 = 0x8915

	protoICMP   = 1
	protoIGMP   = 2
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
)

// Slots of scratch memory that the beginning of a program fills.
const (
	slotType  = iota // ethertype behind all tags
	slotL3           // offset of the network header
	slotProto        // protocol above IP; noProto if there is none
	slotL4           // offset of its header
	slotLater        // not 0 in a fragment without that header
	slotVLAN         // id of the outermost tag, or noVLAN
)

const (
	noProto = 0x100
	noVLAN  = 0xffff

	netOffset = uint32(0xfff00000) // SKF_NET_OFF, -0x100000

	maxTags       = 3 // in the frame
	maxExtensions = 4 // headers between IPv6 and what it carries

	arphrdEthernet = 1
	arphrdLoopback = 772
	packetOutgoing = 4
)

type compiler struct {
	assembler
	frame  Frame
	base   uint32 // added to the offset of each indirect load
	kernel bool
}

func (c *compiler) load(slot int)  { c.emit(bpf.LoadScratch{Dst: bpf.RegA, N: slot}) }
func (c *compiler) index(slot int) { c.emit(bpf.LoadScratch{Dst: bpf.RegX, N: slot}) }
func (c *compiler) store(slot int) { c.emit(bpf.StoreScratch{Src: bpf.RegA, N: slot}) }
func (c *compiler) set(slot int, v uint32) {
	c.emit(bpf.LoadConstant{Dst: bpf.RegA, Val: v})
	c.store(slot)
}

// advance adds A to X.
func (c *compiler) advance() { c.emit(bpf.ALUOpX{Op: bpf.ALUOpAdd}, bpf.TAX{}) }

// Expr is an expression.
type Expr struct{ n node }

// And holds where all of list hold. A nil Expr holds always.
func And(list ...*Expr) *Expr {
	var all *Expr
	for _, e := range list {
		switch {
		case e == nil:
		case all == nil:
			all = e
		default:
			all = &Expr{and{all.n, e.n}}
		}
	}
	return all
}

// Compile makes a program; a nil Expr takes all packets.
func (e *Expr) Compile(opt Options) ([]bpf.Instruction, error) {
	if opt.DropEcho && !opt.Kernel {
		return nil, errors.New("only the kernel knows where a packet goes")
	}
	c := &compiler{kernel: opt.Kernel}
	accept, reject := c.label(), c.label()
	if opt.DropEcho {
		keep, out := c.label(), c.label()
		c.emit(bpf.LoadExtension{Num: bpf.ExtType})
		c.test(bpf.JumpEqual, packetOutgoing, out, keep)
		c.place(out)
		c.emit(bpf.LoadExtension{Num: bpf.ExtLinkLayerType})
		c.test(bpf.JumpEqual, arphrdLoopback, reject, keep)
		c.place(keep)
	}
	n := node(pass{})
	if e != nil {
		n = e.n
	}
	switch {
	case e == nil:
		c.jump(accept)
	case opt.Frame == Mixed:
		eth, next, cooked := c.label(), c.label(), c.label()
		c.emit(bpf.LoadExtension{Num: bpf.ExtLinkLayerType})
		c.test(bpf.JumpEqual, arphrdEthernet, eth, next)
		c.place(next)
		c.test(bpf.JumpEqual, arphrdLoopback, eth, cooked)
		c.place(eth)
		c.program(Ethernet, n, accept, reject)
		c.place(cooked)
		c.program(Network, n, accept, reject)
	default:
		c.program(opt.Frame, n, accept, reject)
	}
	snap := opt.Snap
	if snap == 0 {
		snap = ^uint32(0)
	}
	c.place(accept)
	c.emit(bpf.RetConstant{Val: snap})
	c.place(reject)
	c.emit(bpf.RetConstant{Val: 0})
	return c.assemble()
}

// program tests packets that begin in one way.
func (c *compiler) program(frame Frame, n node, accept, reject label) {
	c.frame, c.base = frame, 0
	if frame == Network {
		c.base = netOffset
	}
	c.set(slotProto, noProto)
	c.set(slotL4, 0)
	c.set(slotLater, 0)
	c.tags()
	c.network()
	n.gen(c, accept, reject)
}

// tags finds the ethertype and the network header.
func (c *compiler) tags() {
	c.set(slotVLAN, noVLAN)
	if c.kernel {
		none := c.label()
		some := c.label()
		c.emit(bpf.LoadExtension{Num: bpf.ExtVLANTagPresent})
		c.test(bpf.JumpEqual, 0, none, some)
		c.place(some)
		c.emit(bpf.LoadExtension{Num: bpf.ExtVLANTag}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff})
		c.store(slotVLAN)
		c.place(none)
	}
	if c.frame == Ethernet {
		c.emit(bpf.LoadConstant{Dst: bpf.RegX, Val: 14}, bpf.LoadAbsolute{Off: 12, Size: 2})
	} else {
		c.emit(bpf.LoadConstant{Dst: bpf.RegX, Val: 0}, bpf.LoadExtension{Num: bpf.ExtProto})
	}
	done := c.label()
	for range maxTags {
		tag := c.label()
		for _, typ := range []uint32{0x8100, 0x88a8} {
			next := c.label()
			c.test(bpf.JumpEqual, typ, tag, next)
			c.place(next)
		}
		c.test(bpf.JumpEqual, 0x9100, tag, done)
		c.place(tag)
		outer, inner := c.label(), c.label()
		c.load(slotVLAN)
		c.test(bpf.JumpEqual, noVLAN, outer, inner)
		c.place(outer)
		c.emit(bpf.LoadIndirect{Off: c.base, Size: 2}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff})
		c.store(slotVLAN)
		c.place(inner)
		c.emit(bpf.LoadIndirect{Off: c.base + 2, Size: 2})
		c.store(slotType)
		c.emit(bpf.LoadConstant{Dst: bpf.RegA, Val: 4})
		c.advance()
		c.load(slotType)
	}
	c.place(done)
	c.store(slotType)
	c.emit(bpf.StoreScratch{Src: bpf.RegX, N: slotL3})
}

// network finds the protocol above IP and its header. X is at the network
// header.
func (c *compiler) network() {
	v4, v6, other, done := c.label(), c.label(), c.label(), c.label()
	c.test(bpf.JumpEqual, typeIPv4, v4, other)
	c.place(other)
	c.test(bpf.JumpEqual, typeIPv6, v6, done)

	c.place(v4) // RFC 791 section 3.1
	at := func(off uint32, size int) { c.emit(bpf.LoadIndirect{Off: c.base + off, Size: size}) }
	at(9, 1)
	c.store(slotProto)
	at(6, 2)
	c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x1fff})
	c.store(slotLater)
	at(0, 1)
	c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 2})
	c.advance()
	c.emit(bpf.StoreScratch{Src: bpf.RegX, N: slotL4})
	c.jump(done)

	c.place(v6) // RFC 8200 section 4
	at(6, 1)
	c.store(slotProto)
	c.emit(bpf.LoadConstant{Dst: bpf.RegA, Val: 40})
	c.advance()
	c.emit(bpf.StoreScratch{Src: bpf.RegX, N: slotL4})
	for range maxExtensions {
		options, fragment, auth, next := c.label(), c.label(), c.label(), c.label()
		c.load(slotProto)
		for _, p := range []uint32{0, 43, 60} { // hop-by-hop options, routing, destination options
			after := c.label()
			c.test(bpf.JumpEqual, p, options, after)
			c.place(after)
		}
		noFragment := c.label()
		c.test(bpf.JumpEqual, 44, fragment, noFragment)
		c.place(noFragment)
		c.test(bpf.JumpEqual, 51, auth, done)
		c.place(options)
		at(0, 1)
		c.store(slotProto)
		at(1, 1)
		c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 3})
		c.jump(next)
		c.place(auth) // RFC 4302 section 2.2: length in words, less 2
		at(0, 1)
		c.store(slotProto)
		at(1, 1)
		c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: 2}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 2})
		c.jump(next)
		c.place(fragment)
		at(0, 1)
		c.store(slotProto)
		at(2, 2)
		c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 3})
		c.store(slotLater)
		first := c.label()
		c.test(bpf.JumpEqual, 0, first, done) // else what follows is data
		c.place(first)
		c.emit(bpf.LoadConstant{Dst: bpf.RegA, Val: 8})
		c.place(next)
		c.advance()
		c.emit(bpf.StoreScratch{Src: bpf.RegX, N: slotL4})
	}
	c.place(done)
}
