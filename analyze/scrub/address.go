package scrub

import (
	"crypto/aes"
	"crypto/cipher"
	"net"
	"net/netip"
)

// addresses replaces addresses so that those which share a prefix still do, and no more: Crypto-PAn (Xu, Fan, Ammar, Moon: Prefix-Preserving
// IP Address Anonymization, ICNP 2002). Each bit is turned or not by what precedes it.
type addresses struct {
	block cipher.Block
	pad   [aes.BlockSize]byte
	known map[address]address
	last  [16]replacement             // by their kinds and last bits: mostly, a few hosts talk
	learn func(kind, from, to string) // Options.Learn
	in    [aes.BlockSize]byte
	out   [aes.BlockSize]byte
}

// address is an address, filled up with zeros, and its kind.
type address struct {
	bytes [16]byte
	kind  placeKind
}

// String is the address as it is usually written.
func (a address) String() string {
	b := a.bytes[:placeSizes[a.kind]]
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
	if kind == placeIPv6 && mapped(src) {
		copy(dst, src[:12])
		kind, dst, src = placeIPv4, dst[12:], src[12:]
	}
	if blank(src) { // nobody's address
		copy(dst, src)
		return
	}
	from := address{kind: kind}
	copy(from.bytes[:], src)
	last := &a.last[(int(src[len(src)-1])+5*int(kind))%len(a.last)] // two hosts have four addresses, often with the same ends
	if last.from != from {
		*last = replacement{from, a.find(from)}
	}
	copy(dst, last.to.bytes[:])
}

// replacement is an address with what takes its place.
type replacement struct{ from, to address }

// find returns what takes the place of an address.
func (a *addresses) find(from address) address {
	to, ok := a.known[from]
	if !ok {
		to = from
		a.pan(to.bytes[:placeSizes[from.kind]])
		if from.kind == placeMAC {
			const flags = 3 // to a group, and administered locally
			to.bytes[0] = to.bytes[0]&^flags | from.bytes[0]&flags
		}
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

// mapped reports whether 16 bytes hold an IPv4 address (RFC 4291, section 2.5.5.2).
func mapped(b []byte) bool { return constant(b[:10], 0) && b[10] == 0xff && b[11] == 0xff }

func constant(b []byte, v byte) bool {
	for _, x := range b {
		if x != v {
			return false
		}
	}
	return true
}
