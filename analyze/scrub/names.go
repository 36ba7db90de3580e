package scrub

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// names replaces names, handles and the like by others of the same length, always by the same for the same key. Different ones stay
// different: the replacement is a Feistel network over the symbols, except for texts with characters that are not in the alphabet.
type names struct {
	block cipher.Block
	known map[string]string
	key   []byte // of known, for the lookup
	half  []byte
	opt   *Options
	x     [aes.BlockSize]byte
	y     [aes.BlockSize]byte
}

// alphabet has the characters of portable file names (POSIX, section 3.282); the last one is none of a label.
const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

const (
	allBytes = 256
	inName   = len(alphabet)
	inLabel  = len(alphabet) - 1
)

// symbols are the places of characters in the alphabet, −1 for others.
var symbols = func() (s [256]int8) {
	for i := range s {
		s[i] = int8(bytes.IndexByte([]byte(alphabet), byte(i)))
	}
	return s
}()

// Bounds of what is remembered.
const (
	maxKnown     = 1 << 14
	longestKnown = 255

	mostExtension = 6 // with its dot
)

// rounds of the network; four would do for halves of the size of a cipher's block.
const rounds = 10

// derive makes a key for one purpose.
func derive(key []byte, purpose string) [sha256.Size]byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose))
	return [sha256.Size]byte(h.Sum(nil))
}

func newNames(opt *Options) *names {
	k := derive(opt.Key, "names")
	block, err := aes.NewCipher(k[:])
	if err != nil {
		panic(err) // not with 32 bytes
	}
	return &names{opt: opt, block: block, known: make(map[string]string)}
}

// replace fills dst with what takes the place of src: xdr.Redactor.Replace.
func (n *names) replace(c xdr.Class, dst, src []byte) {
	if len(src) > longestKnown {
		n.make(c, dst, src)
		n.learn(c, src, dst)
		return
	}
	n.key = append(append(n.key[:0], byte(c)), src...)
	to, ok := n.known[string(n.key)]
	if !ok {
		n.make(c, dst, src)
		if len(n.known) >= maxKnown {
			clear(n.known)
		}
		n.known[string(n.key)] = string(dst)
		n.learn(c, src, dst)
		return
	}
	copy(dst, to)
}

// learned is what Options.Learn is told of, as text; handles are told in hexadecimal digits.
var learned = map[xdr.Class]string{
	xdr.Name: "name", xdr.Path: "path", xdr.Handle: "handle", xdr.Who: "user", xdr.User: "number", xdr.Host: "host", xdr.Owner: "owner",
}

func (n *names) learn(c xdr.Class, from, to []byte) {
	kind := learned[c]
	if n.opt.Learn == nil || kind == "" || bytes.Equal(from, to) {
		return
	}
	a, b := string(from), string(to)
	switch c {
	case xdr.Handle:
		a, b = hex.EncodeToString(from), hex.EncodeToString(to)
	case xdr.User:
		a, b = fmt.Sprint(binary.BigEndian.Uint32(from)), fmt.Sprint(binary.BigEndian.Uint32(to))
	}
	n.opt.Learn(kind, a, b)
}

func (n *names) make(c xdr.Class, dst, src []byte) {
	switch c {
	case xdr.Name:
		n.name(dst, src)
	case xdr.Path:
		n.split('/', dst, src, n.name)
	case xdr.Host:
		n.split('.', dst, src, func(dst, src []byte) { n.text(xdr.Host, inLabel, dst, src) })
	case xdr.Who:
		n.who(dst, src)
	case xdr.Owner:
		n.owner(dst, src)
	case xdr.Address:
		universal(dst, src)
	case xdr.Known:
		if known[string(src)] {
			copy(dst, src)
		}
	case xdr.User:
		binary.BigEndian.PutUint32(dst, n.user(binary.BigEndian.Uint32(src)))
	case xdr.Handle:
		copy(dst, src)
		if blank(src) {
			return
		}
		for n.permute(c, allBytes, dst); blank(dst); {
			n.permute(c, allBytes, dst)
		}
	}
}

// blank reports whether an opaque may be none, or one that the protocol gives a meaning, as some state ids.
func blank(b []byte) bool { return constant(b, 0) || constant(b, 0xff) }

// name replaces a component of a path.
func (n *names) name(dst, src []byte) {
	if dots(src) {
		copy(dst, src)
		return
	}
	if i := bytes.LastIndexByte(src, '.'); n.opt.KeepExtensions && i > 0 && len(src)-i <= mostExtension {
		copy(dst[i:], src[i:])
		dst, src = dst[:i], src[:i]
	}
	for n.text(xdr.Name, inName, dst, src); dots(dst); src = dst {
		n.text(xdr.Name, inName, dst, src)
	}
}

// dots reports whether a name is "." or "..", which stand for directories and are no secret.
func dots(b []byte) bool { return len(b) > 0 && len(b) <= 2 && constant(b, '.') }

// split replaces what stands between separators.
func (n *names) split(separator byte, dst, src []byte, part func(dst, src []byte)) {
	for len(src) > 0 {
		i := bytes.IndexByte(src, separator)
		if i < 0 {
			part(dst, src)
			return
		}
		if i > 0 {
			part(dst[:i], src[:i])
		}
		dst[i] = separator
		dst, src = dst[i+1:], src[i+1:]
	}
}

// text replaces a text of the first radix characters of the alphabet. One with other characters becomes one without.
func (n *names) text(c xdr.Class, radix int, dst, src []byte) {
	for i, b := range src {
		s := symbols[b]
		if s < 0 || int(s) >= radix {
			n.stream(c, rounds, len(src), src, dst)
			for i := range dst {
				dst[i] = alphabet[int(dst[i])%radix]
			}
			return
		}
		dst[i] = byte(s)
	}
	n.permute(c, radix, dst)
	for i, s := range dst {
		dst[i] = alphabet[s]
	}
}

// permute replaces b, which consists of numbers below radix. No two are replaced by the same.
func (n *names) permute(c xdr.Class, radix int, b []byte) {
	middle := len(b) / 2
	left, right := b[:middle], b[middle:]
	for round := range rounds {
		from, to := left, right
		if round&1 != 0 {
			from, to = right, left
		}
		if cap(n.half) < len(to) {
			n.half = make([]byte, len(to))
		}
		add := n.half[:len(to)]
		n.stream(c, round, len(b), from, add)
		for i := range to {
			to[i] = byte((int(to[i]) + int(add[i])) % radix)
		}
	}
}

// stream fills dst with what nobody can tell from chance without the key, and which depends on all other arguments.
func (n *names) stream(c xdr.Class, round, size int, from, dst []byte) {
	n.x = [aes.BlockSize]byte{byte(c), byte(round), byte(size >> 16), byte(size >> 8), byte(size), byte(len(from) >> 8), byte(len(from))}
	n.block.Encrypt(n.x[:], n.x[:])
	for len(from) > 0 {
		k := min(len(from), aes.BlockSize)
		for i, b := range from[:k] {
			n.x[i] ^= b
		}
		n.block.Encrypt(n.x[:], n.x[:])
		from = from[k:]
	}
	for i := 0; len(dst) > 0; i++ {
		n.y = n.x
		n.y[0] ^= byte(i)
		n.y[1] ^= byte(i >> 8)
		n.y[2] ^= byte(i >> 16)
		n.y[15] ^= 0xff // no block of the chain above
		n.block.Encrypt(n.y[:], n.y[:])
		dst = dst[copy(dst, n.y[:]):]
	}
}

// special are principals of access control lists that the protocol defines (RFC 8881, section 6.2.1.5).
var special = map[string]bool{
	"OWNER@": true, "GROUP@": true, "EVERYONE@": true, "INTERACTIVE@": true, "NETWORK@": true, "DIALUP@": true,
	"BATCH@": true, "ANONYMOUS@": true, "AUTHENTICATED@": true, "SERVICE@": true,
}

// who replaces a user or a group.
func (n *names) who(dst, src []byte) {
	if special[string(src)] {
		copy(dst, src)
		return
	}
	if v, ok := number(src); ok {
		strconv.AppendUint(dst[:0], uint64(n.user(v)), decimal)
		return
	}
	user := len(src)
	if i := bytes.IndexByte(src, '@'); i >= 0 {
		user = i
		dst[i] = '@'
		n.make(xdr.Host, dst[i+1:], src[i+1:])
	}
	n.text(xdr.Who, inLabel, dst[:user], src[:user])
}

const decimal = 10

// number is the number of a user or a group that b spells.
func number(b []byte) (uint32, bool) {
	if len(b) == 0 || !digits(b) || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b), decimal, 32)
	return uint32(v), err == nil
}

// everybody reports whether a number means the same on all hosts: root, nobody, or none.
func everybody(v uint32) bool { return v == 0 || v == 65534 || v >= math.MaxUint32-1 }

// user replaces the number of a user or a group by one with as many digits, so that it is the same as text.
func (n *names) user(v uint32) uint32 {
	if !n.opt.Users || everybody(v) {
		return v
	}
	b := strconv.AppendUint(nil, uint64(v), decimal)
	for { // until the permutation comes to a number again; at the latest to this one
		for i := range b {
			b[i] -= '0'
		}
		n.permute(xdr.User, decimal, b)
		for i := range b {
			b[i] += '0'
		}
		if to, ok := number(b); ok && !everybody(to) {
			return to
		}
	}
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// owner replaces what a client calls itself, or the owner of a lock: the words of a text, or all of anything else.
func (n *names) owner(dst, src []byte) {
	for _, b := range src {
		if b < ' ' || b > '~' {
			copy(dst, src)
			n.permute(xdr.Owner, allBytes, dst)
			return
		}
	}
	for len(src) > 0 {
		k := 0
		for k < len(src) && symbols[src[k]] >= 0 && int(symbols[src[k]]) < inLabel {
			k++
		}
		if k == 0 {
			dst[0] = src[0]
			k = 1
		} else {
			n.text(xdr.Owner, inLabel, dst[:k], src[:k])
		}
		dst, src = dst[k:], src[k:]
	}
}

// known are the transports that RFC 5665 and RFC 8267 name, what rpcbind says of them, and the mechanisms of the GSS-API for Kerberos
// (RFC 4121) and for negotiation (RFC 4178) with and without the tag of their encoding.
var known = map[string]bool{
	"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02": true, "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02": true,
	"\x2b\x06\x01\x05\x05\x02": true, "\x06\x06\x2b\x06\x01\x05\x05\x02": true,
	"tcp": true, "tcp6": true, "udp": true, "udp6": true, "rdma": true, "rdma6": true, "sctp": true, "sctp6": true, "local": true,
	"inet": true, "inet6": true, "loopback": true, "ticotsord": true, "ticots": true, "ticlts": true, "unspec": true, "-": true,
}

// universal copies a universal address with zeros for all but its port (RFC 5665, section 5.2.3.3): an address of other numbers may need
// more digits.
func universal(dst, src []byte) {
	port := bytes.LastIndexByte(src, '.')
	if port >= 0 {
		port = bytes.LastIndexByte(src[:port], '.')
	}
	if port < 0 || !digits(bytes.ReplaceAll(src[port:], []byte{'.'}, nil)) || len(src)-port > len(".255.255") {
		return
	}
	for i, b := range src[:port] {
		if dst[i] = '0'; b == '.' || b == ':' {
			dst[i] = b
		}
	}
	copy(dst[port:], src[port:])
}
