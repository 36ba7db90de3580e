package state

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
)

// ids makes the numbers by which clients name their state. Half of each is random, the other half
// a keyed checksum of it. So they cannot be guessed, and a number given out by this instance of
// the server can be recognised without remembering it (RFC 7530, section 9.1.4 demands different
// answers: STALE, EXPIRED and BAD_STATEID).
type ids struct{ block cipher.Block }

func newIDs() ids {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	b, _ := aes.NewCipher(key[:])
	return ids{b}
}

// What a checksum is for.
const (
	sumClient = 1 + iota
	sumState
)

// sum is the checksum: one block of AES over a message of fixed length, truncated.
func (i ids) sum(what byte, a, b uint32) uint32 {
	var m [aes.BlockSize]byte
	m[0] = what
	binary.BigEndian.PutUint32(m[4:], a)
	binary.BigEndian.PutUint32(m[8:], b)
	i.block.Encrypt(m[:], m[:])
	return binary.BigEndian.Uint32(m[:])
}

// client is the client ID with the given random half.
func (i ids) client(tag uint32) uint64 { return uint64(tag)<<32 | uint64(i.sum(sumClient, tag, 0)) }

// madeClient reports whether the client ID was made by this instance.
func (i ids) madeClient(id uint64) bool { return i.client(uint32(id>>32)) == id }

// state is the "other" of a stateid: the random half of the client ID, a random
// number, and the checksum of both.
func (i ids) state(client, number uint32) (other [12]byte) {
	binary.BigEndian.PutUint32(other[:], client)
	binary.BigEndian.PutUint32(other[4:], number)
	binary.BigEndian.PutUint32(other[8:], i.sum(sumState, client, number))
	return other
}

// madeState reports whether the stateid was made by this instance.
func (i ids) madeState(other *[12]byte) bool {
	return i.state(binary.BigEndian.Uint32(other[:]), binary.BigEndian.Uint32(other[4:])) == *other
}

// random is a random number that is neither 0 nor all ones, of which the special
// stateids are made.
func random() uint32 {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		if n := binary.BigEndian.Uint32(b[:]); n != 0 && n != 0xffffffff {
			return n
		}
	}
}
