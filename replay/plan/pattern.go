package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// FillPattern fills b with what stands at an offset of a file whose content is
// made up. It depends on nothing but the object's ID and the offset, so that a
// READ of any range can be verified, whichever WRITE has put it there.
func FillPattern(b []byte, object int, offset uint64) {
	var word [8]byte
	for i := 0; i < len(b); {
		at := offset + uint64(i)
		binary.LittleEndian.PutUint64(word[:], mix(uint64(object)<<48^at>>3))
		i += copy(b[i:], word[at&7:])
	}
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// HashData is the hash by which a plan names data: the first half of its
// SHA-256, in hexadecimal.
func HashData(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:16])
}
