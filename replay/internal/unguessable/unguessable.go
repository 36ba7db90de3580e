// Package unguessable makes numbers for the wire that a stranger must not guess:
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

// Uint64 is a random number.
func Uint64() uint64 {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return binary.BigEndian.Uint64(b[:])
}

// PSN is a random packet sequence number of 24 bits.
func PSN() uint32 { return uint32(Uint64()) & 0xffffff }

// Sequence gives numbers of a fixed width in an order that nobody can foretell.
// None comes again before all others have come, as RFC 6056, section 3.3.4 wants it
// of ports: a late packet of what had a number before must not meet what has it now.
// It is a block cipher of the width (a Feistel network with AES as its round
// function) that encrypts a counter; each lap has a key of its own.
type Sequence struct {
	half uint // bits of half a number

	mu    sync.Mutex
	block cipher.Block
	next  uint64
	// What the cipher works with, here so that a number costs no allocation.
	in, out [aes.BlockSize]byte
}

// rounds is what a Feistel network of a random function needs so that it cannot be
// told from a random permutation, by those who choose what is encrypted and
// decrypted too (Luby and Rackoff need 4), with some more for halves of 12 bits.
const rounds = 8

// NewSequence makes a sequence of numbers of bits bits, an even number up to 32.
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

// Next is the next number.
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
