package krb5

import (
	"crypto/sha1" //nolint:gosec // RFC 3962 says so
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strconv"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/common"
)

// EType is the number of an encryption type, from the registry of RFC 3961.
type EType int32

// Encryption types that contexts may have.
const (
	AES128SHA1   EType = 17 // RFC 3962
	AES256SHA1   EType = 18
	AES128SHA256 EType = 19 // RFC 8009
	AES256SHA384 EType = 20
)

var etypeNames = map[EType]string{
	1: "des-cbc-crc", 3: "des-cbc-md5", 16: "des3-cbc-sha1",
	AES128SHA1: "aes128-cts-hmac-sha1-96", AES256SHA1: "aes256-cts-hmac-sha1-96",
	AES128SHA256: "aes128-cts-hmac-sha256-128", AES256SHA384: "aes256-cts-hmac-sha384-192",
	23: "rc4-hmac", 24: "rc4-hmac-exp", 25: "camellia128-cts-cmac", 26: "camellia256-cts-cmac",
}

// String is the type's name, or its number.
func (e EType) String() string {
	if n, ok := etypeNames[e]; ok {
		return n
	}
	return "enctype " + strconv.Itoa(int(e))
}

// profile has the differences between the AES types.
type profile struct {
	key  int // bytes
	mac  int // bytes of a truncated HMAC
	hash func() hash.Hash
	// cipherMAC: the HMAC covers the ciphertext (RFC 8009, section 5), not the
	// plaintext (RFC 3962, section 6).
	cipherMAC bool
}

func (e EType) profile() *profile {
	switch e {
	case AES128SHA1:
		return &profile{16, 12, sha1.New, false}
	case AES256SHA1:
		return &profile{32, 12, sha1.New, false}
	case AES128SHA256:
		return &profile{16, 16, sha256.New, true}
	case AES256SHA384:
		return &profile{32, 24, sha512.New384, true}
	}
	return nil
}

// Key is a key with its type.
type Key struct {
	EType EType
	Value []byte
}

// usable reports whether k can be the key of a context.
func (k *Key) usable() bool {
	p := k.EType.profile()
	return p != nil && len(k.Value) == p.key
}

// Purposes of derived keys (RFC 3961, section 5.3).
var purposes = [...]func(uint32) []byte{common.GetUsageKe, common.GetUsageKi, common.GetUsageKc}

const (
	keyEncryption = iota
	keyIntegrity
	keyChecksum
)

// derive makes the key for a usage and purpose. k must be usable.
func (k *Key) derive(usage uint32, purpose int) ([]byte, error) {
	e, err := crypto.GetEtype(int32(k.EType))
	if err != nil {
		return nil, err
	}
	return e.DeriveKey(k.Value, purposes[purpose](usage))
}

// decrypt decrypts a message with k. False means a wrong key, a damaged message, or an
// unsupported type.
func (k *Key) decrypt(message []byte, usage uint32) ([]byte, bool) {
	if k.EType.profile() != nil {
		if !k.usable() {
			return nil, false
		}
		s, err := newSealer(k, usage)
		if err != nil {
			return nil, false
		}
		n := len(message) - s.mac
		if n < blockSize {
			return nil, false
		}
		b := make([]byte, n)
		if !s.open(b, message) {
			return nil, false
		}
		return b[blockSize:], true
	}
	// The library slices before it checks lengths.
	e, err := crypto.GetEtype(int32(k.EType))
	if err != nil || len(k.Value) != e.GetKeyByteSize() || len(message) < e.GetHMACBitLength()/8+e.GetConfounderByteSize() {
		return nil, false
	}
	b, err := e.DecryptMessage(k.Value, message, usage)
	return b, err == nil
}
