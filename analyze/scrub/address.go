package scrub

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math"
	"net"
	"net/netip"
)

// addresses replaces addresses so that those which share a prefix still do, and no more: Crypto-PAn (Xu, Fan, Ammar, Moon: Prefix-Preserving
// IP Address Anonymization, ICNP 2002). Each bit is turned or not by what precedes it.
type addresses struct {
	block cipher.Block
	pad   [aes.BlockSize]byte
	known map[address]address
	last  [16]replacement             // mostly, a few hosts talk
	learn func(kind, from, to string) // Options.Learn
	in    [aes.BlockSize]byte
	out   [aes.BlockSize]byte
}

// address is an address as numbers, filled up with zeros at its end, and its kind.
type address struct {
	high, low uint64
	kind      placeKind
}

// addressOf is an address as it is in a packet.
func addressOf(kind placeKind, b []byte) address {
	switch kind {
	case placeIPv4:
		return address{uint64(binary.BigEndian.Uint32(b)) << 32, 0, kind}
	case placeMAC:
		return address{uint64(binary.BigEndian.Uint32(b))<<32 | uint64(binary.BigEndian.Uint16(b[4:]))<<16, 0, kind}
	}
	return address{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), kind}
}

// put writes an address to a packet.
func (a *address) put(b []byte) {
	switch a.kind {
	case placeIPv4:
		binary.BigEndian.PutUint32(b, uint32(a.high>>32))
	case placeMAC:
		binary.BigEndian.PutUint32(b, uint32(a.high>>32))
		binary.BigEndian.PutUint16(b[4:], uint16(a.high>>16))
	default:
		binary.BigEndian.PutUint64(b, a.high)
		binary.BigEndian.PutUint64(b[8:], a.low)
	}
}

// noAddress has the addresses, all of whose bits are set, of each kind.
var noAddress = [...]address{
	placeIPv4: {0xffffffff << 32, 0, placeIPv4}, placeIPv6: {math.MaxUint64, math.MaxUint64, placeIPv6}, placeMAC: {0xffffffffffff << 16, 0, placeMAC},
}

// String is the address as it is usually written.
func (a address) String() string {
	b := make([]byte, placeSizes[a.kind])
	a.put(b)
	if a.kind == placeMAC {
		return net.HardwareAddr(b).String()
	}
	ip, _ := netip.AddrFromSlice(b)
	return ip.String()
}

// placeKind is a kind of address.
type placeKind uint8

const (
	placeIPv4 placeKind = iota + 1
	placeIPv6           // or a GID, which may hold an IPv4 address
	placeMAC
)

var placeSizes = [...]int{placeIPv4: 4, placeIPv6: 16, placeMAC: 6}

// maxAddresses is how many addresses are remembered.
const maxAddresses = 1 << 16

// addressKey is the size of a key in bytes: one for AES, and one that the padding is made of.
const addressKey = 32

func newAddresses(key *[addressKey]byte) *addresses {
	block, err := aes.NewCipher(key[:16])
	if err != nil {
		panic(err) // not with 16 bytes
	}
	a := &addresses{block: block, known: make(map[address]address)}
	block.Encrypt(a.pad[:], key[16:])
	return a
}

// replace puts what takes the place of src into dst, which has the same length.
func (a *addresses) replace(kind placeKind, dst, src []byte) {
	from := addressOf(kind, src)
	if kind == placeIPv6 && from.high == 0 && from.low>>32 == 0xffff { // it holds an IPv4 address (RFC 4291, section 2.5.5.2)
		copy(dst, src[:12])
		dst, from = dst[12:], address{from.low << 32, 0, placeIPv4}
	}
	if from.high|from.low == 0 || from == noAddress[from.kind] { // nobody's address
		from.put(dst)
		return
	}
	last := &a.last[((from.high^from.low)*odd+uint64(from.kind)<<60)>>60]
	if last.from != from {
		*last = replacement{from, a.find(from)}
	}
	last.to.put(dst)
}

// replacement is an address with what takes its place.
type replacement struct{ from, to address }

// find returns what takes the place of an address.
func (a *addresses) find(from address) address {
	to, ok := a.known[from]
	if !ok {
		b := make([]byte, placeSizes[from.kind])
		from.put(b)
		first := b[0]
		a.pan(b)
		if from.kind == placeMAC {
			const flags = 3 // to a group, and administered locally
			b[0] = b[0]&^flags | first&flags
		}
		to = addressOf(from.kind, b)
		if len(a.known) >= maxAddresses {
			clear(a.known)
		}
		a.known[from] = to
		if a.learn != nil {
			a.learn("address", from.String(), to.String())
		}
	}
	return to
}

// pan is Crypto-PAn.
func (a *addresses) pan(b []byte) {
	var turn [16]byte
	for i := range 8 * len(b) {
		at, bit := i/8, i%8
		a.in = a.pad
		copy(a.in[:at], b)
		mask := byte(0xff) << (8 - bit)
		a.in[at] = b[at]&mask | a.pad[at]&^mask
		a.block.Encrypt(a.out[:], a.in[:])
		turn[at] |= a.out[0] >> 7 << (7 - bit)
	}
	for i := range b {
		b[i] ^= turn[i]
	}
}

func constant(b []byte, v byte) bool {
	for _, x := range b {
		if x != v {
			return false
		}
	}
	return true
}
