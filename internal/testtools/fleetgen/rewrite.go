package fleetgen

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// Rewriter gives the hosts of a capture other addresses. Checksums that were right stay right, those that were wrong
// stay wrong. Those of the transport are updated (RFC 1624), so cut packets and fragments keep them as well.
type Rewriter struct {
	n     int // tells captures apart
	to    map[netip.Addr]netip.Addr
	taken map[netip.Addr]bool
	words []swap
}

// swap is an address as it stands in connection management: 16 bytes, IPv4 mapped (a GID) or with zeros before it.
type swap struct{ from, to [16]byte }

// NewRewriter makes a Rewriter; different n give different addresses, below 65536.
func NewRewriter(n int) *Rewriter {
	return &Rewriter{n: n, to: make(map[netip.Addr]netip.Addr), taken: make(map[netip.Addr]bool)}
}

// Address is the new address of a host. What is not an address of a host stays as it is.
func (r *Rewriter) Address(a netip.Addr) netip.Addr {
	if a.IsMulticast() || a.IsUnspecified() || a.IsLoopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return a
	}
	mapped := a.Is4In6()
	a = a.Unmap()
	x, ok := r.to[a]
	if !ok {
		x = r.choose(a)
		r.to[a], r.taken[x] = x, true
		r.words = append(r.words, swap{a.As16(), x.As16()})
		if a.Is4() {
			var f, t [16]byte
			copy(f[12:], a.AsSlice())
			copy(t[12:], x.AsSlice())
			r.words = append(r.words, swap{f, t})
		}
	}
	if mapped {
		return netip.AddrFrom16(x.As16())
	}
	return x
}

// choose keeps the end of an address, unless another host has it.
func (r *Rewriter) choose(a netip.Addr) netip.Addr {
	var x netip.Addr
	if a.Is4() {
		x = netip.AddrFrom4([4]byte{10, byte(r.n >> 8), byte(r.n), a.As4()[3]})
	} else {
		b := a.As16()
		copy(b[:8], []byte{0xfd, 0x52, 0, 0, 0, 0, byte(r.n >> 8), byte(r.n)})
		x = netip.AddrFrom16(b)
	}
	for r.taken[x] {
		b := x.AsSlice()
		b[len(b)-1]++
		x, _ = netip.AddrFromSlice(b)
	}
	return x
}

// Packet rewrites a packet in place, and reports whether it has addresses.
func (r *Rewriter) Packet(p *capture.Packet) bool {
	var f link.Frame
	link.Decode(p.Link, p.Data, p.Length, &f)
	v4, at, size := false, 8, 16
	switch net := f.Net; {
	case len(net) >= 40 && net[0]>>4 == 6:
	case len(net) >= 20 && net[0]>>4 == 4:
		v4, at, size = true, 12, 4
	default:
		return false
	}
	whole := uint32(len(p.Data)) >= p.Length
	crc := whole && icrc(&f) == right
	var diff uint32
	for i := range 2 {
		b := f.Net[at+i*size : at+(i+1)*size]
		old, _ := netip.AddrFromSlice(b)
		diff = minus(diff, b)
		copy(b, r.Address(old).AsSlice())
		diff = plus(diff, b)
	}
	if v4 {
		update(f.Net[10:12], diff)
	}
	switch t := f.Transport; {
	case f.Proto == link.TCP && len(t) >= 18:
		update(t[16:18], diff)
	case f.Proto == link.UDP && len(t) >= 8 && (t[6] != 0 || t[7] != 0):
		update(t[6:8], diff)
	}
	if management(&f) {
		r.gids(&f)
	}
	if crc {
		seal(&f)
	}
	return true
}

// plus and minus add to a sum in one's complement, or subtract from it.
func plus(sum uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	return fold(sum)
}

func minus(sum uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(^binary.BigEndian.Uint16(b))
	}
	return fold(sum)
}

func fold(sum uint32) uint32 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return sum
}

// update updates a checksum of the Internet by what was added to the words that it is of (RFC 1624).
func update(b []byte, diff uint32) {
	binary.BigEndian.PutUint16(b, ^uint16(fold(uint32(^binary.BigEndian.Uint16(b))+diff)))
}

// isIB reports whether a frame has a packet of RoCE.
func isIB(f *link.Frame) bool {
	return f.Proto == link.RoCEv1 || f.Proto == link.UDP && f.DstPort == 4791
}

// management reports whether a frame is for a queue pair of management: 0 or 1.
func management(f *link.Frame) bool {
	return isIB(f) && len(f.Payload) >= roce.BTHSize && f.Payload[5] == 0 && f.Payload[6] == 0 && f.Payload[7] <= 1
}

// gids rewrites addresses in connection management. Only those are changed that packets have been seen of.
func (r *Rewriter) gids(f *link.Frame) {
	body := f.Payload[roce.BTHSize:]
	if n := f.PayloadLen - roce.BTHSize - roce.ICRCSize; n >= 0 && n < len(body) {
		body = body[:n]
	}
	old := bytes.Clone(body)
	for _, w := range r.words {
		for at := 0; ; {
			i := bytes.Index(old[at:], w.from[:])
			if i < 0 {
				break
			}
			copy(body[at+i:], w.to[:])
			at += i + len(w.from)
		}
	}
}

// verdict is whether an ICRC is right.
type verdict uint8

const (
	unknown verdict = iota
	right
	wrong
)

func icrc(f *link.Frame) verdict {
	n := f.PayloadLen - roce.ICRCSize
	if !isIB(f) || n < roce.BTHSize || len(f.Payload) < f.PayloadLen {
		return unknown
	}
	sum, ok := roce.ICRC(f.Proto, f.Net, f.Transport, f.Payload[:n])
	switch {
	case !ok:
		return unknown
	case binary.LittleEndian.Uint32(f.Payload[n:]) == sum:
		return right
	}
	return wrong
}

// seal gives a packet its ICRC.
func seal(f *link.Frame) {
	n := f.PayloadLen - roce.ICRCSize
	if sum, ok := roce.ICRC(f.Proto, f.Net, f.Transport, f.Payload[:n]); ok {
		binary.LittleEndian.PutUint32(f.Payload[n:], sum)
	}
}
