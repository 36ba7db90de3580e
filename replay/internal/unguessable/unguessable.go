// Package unguessable generates numbers for the wire that a stranger must not guess:
// queue pair numbers, packet sequence numbers, communication ids, keys of memory.
// All randomness comes from crypto/rand.
package unguessable

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"sync"
)

// Uint64 returns a random number.
func Uint64() uint64 {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return binary.BigEndian.Uint64(b[:])
}

// PSN returns a random packet sequence number of 24 bits.
func PSN() uint32 { return uint32(Uint64()) & 0xffffff }

// Sequence yields numbers of a fixed width in an unpredictable order. No number is
// repeated before all others have been used, as RFC 6056, section 3.3.4, recommends for
// ports: a late packet for the previous owner of a number must not reach the next one.
// It is a block cipher of the width (a Feistel network with AES as its round
// function) that encrypts a counter; each lap has a key of its own.
type Sequence struct {
	half uint // width of half a number in bits

	mu    sync.Mutex
	block cipher.Block
	next  uint64
	// Scratch memory of the cipher, so that a number costs no allocation.
	in, out [aes.BlockSize]byte
}

// rounds is the number of rounds. A Feistel network of random functions needs 4 to be
// indistinguishable from a random permutation even for those who choose what is
// encrypted and decrypted (Luby and Rackoff); halves of 12 bits get some more.
const rounds = 8

// NewSequence returns a sequence of numbers of bits bits; bits is even and at most 32.
func NewSequence(bits int) *Sequence {
	if bits < 2 || bits > 32 || bits%2 != 0 {
		panic("unguessable: the width is an even number of bits up to 32")
	}
	s := &Sequence{half: uint(bits / 2)}
	s.rekey()
	return s
}

func (s *Sequence) rekey() {
	var key [16]byte
	rand.Read(key[:]) //nolint:errcheck // never fails
	s.block, _ = aes.NewCipher(key[:])
	s.next = 0
}

// Next returns the next number.
func (s *Sequence) Next() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next>>(2*s.half) != 0 {
		s.rekey()
	}
	n := s.encrypt(uint32(s.next))
	s.next++
	return n
}

func (s *Sequence) encrypt(n uint32) uint32 {
	mask := uint32(1)<<s.half - 1
	left, right := n>>s.half, n&mask
	for r := range rounds {
		s.in[0] = byte(r)
		binary.BigEndian.PutUint32(s.in[4:], right)
		s.block.Encrypt(s.out[:], s.in[:])
		left, right = right, left^binary.BigEndian.Uint32(s.out[:])&mask
	}
	return left<<s.half | right
}
