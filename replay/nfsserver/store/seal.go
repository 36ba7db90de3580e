package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"sync"
)

// HandleSize is the size of a handle as clients see it, in bytes.
const HandleSize = plainSize + tagSize

const (
	plainSize = 8 + 4
	tagSize   = 12
)

// Key is the secret of a Seal.
type Key [16]byte

// NewKey is a random key.
func NewKey() (k Key) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// Seal turns handles into bytes for clients and back. The bytes are the number,
// the generation, and a keyed checksum of both: the first 96 bits of one block
// of AES, which as a message authentication code is sound since all messages
// have one length. Whoever was not given a handle cannot make it up, even if he
// knows the numbers of files. (He who was given one may pass it on: permissions
// are checked for each operation, but those of the directories above a file
// only when it is looked up.)
type Seal struct {
	block   cipher.Block
	scratch sync.Pool // of *[aes.BlockSize]byte
}

// NewSeal returns the Seal with that key.
func NewSeal(k Key) *Seal {
	b, _ := aes.NewCipher(k[:]) // cannot fail: the size is right
	s := &Seal{block: b}
	s.scratch.New = func() any { return new([aes.BlockSize]byte) }
	return s
}

// message is what the checksum is of. b has the size of a block.
func message(b []byte, h Handle) {
	binary.BigEndian.PutUint64(b, h.ID)
	binary.BigEndian.PutUint32(b[8:], h.Generation)
	binary.BigEndian.PutUint32(b[12:], 0)
}

// Append appends HandleSize bytes.
func (s *Seal) Append(b []byte, h Handle) []byte {
	n := len(b)
	b = binary.BigEndian.AppendUint64(b, h.ID)
	b = binary.BigEndian.AppendUint32(b, h.Generation)
	// The checksum is made in its place, and cut off afterwards.
	b = append(b, make([]byte, aes.BlockSize)...)
	if s == nil {
		return b[:n+HandleSize]
	}
	sum := b[n+plainSize:]
	message(sum, h)
	s.block.Encrypt(sum, sum)
	return b[:n+HandleSize]
}

// Open reads what Append wrote. ErrBadHandle if the size is wrong; ErrStale if
// the checksum is: the handle may be that of an earlier server.
func (s *Seal) Open(b []byte) (Handle, error) {
	if len(b) != HandleSize {
		return Handle{}, ErrBadHandle
	}
	if s == nil {
		return Handle{}, ErrStale
	}
	h := Handle{ID: binary.BigEndian.Uint64(b), Generation: binary.BigEndian.Uint32(b[8:])}
	sum := s.scratch.Get().(*[aes.BlockSize]byte)
	message(sum[:], h)
	s.block.Encrypt(sum[:], sum[:])
	same := subtle.ConstantTimeCompare(sum[:tagSize], b[plainSize:])
	s.scratch.Put(sum)
	if same == 0 {
		return Handle{}, ErrStale
	}
	return h, nil
}
