package krb5

import (
	"crypto/cipher"
	"crypto/subtle"
)

// seal encrypts a message in place: b begins with n bytes of plaintext, the
// confounder first, and has room for the HMAC behind them.
func (s *sealer) seal(b []byte, n int) {
	text := b[:n]
	if !s.cipherMAC {
		s.hash.Reset()
		s.hash.Write(text)
		copy(b[n:n+s.mac], s.hash.Sum(s.sum[:0]))
	}
	s.encrypt(text)
	if s.cipherMAC {
		s.hash.Reset()
		s.hash.Write(s.zero[:])
		s.hash.Write(text)
		copy(b[n:n+s.mac], s.hash.Sum(s.sum[:0]))
	}
}

// encrypt is AES-CBC with ciphertext stealing, the inverse of decrypt.
func (s *sealer) encrypt(b []byte) {
	n := len(b)
	if n == blockSize {
		s.block.Encrypt(b, b)
		return
	}
	last := (n-1)%blockSize + 1
	head := n - blockSize - last
	if s.out == nil {
		s.out = cipher.NewCBCEncrypter(s.block, s.zero[:])
		s.outIV, _ = s.out.(ivSetter)
	} else {
		s.outIV.SetIV(s.zero[:])
	}
	s.out.CryptBlocks(b[:head+blockSize], b[:head+blockSize])
	copy(s.a[:], b[head:])
	clear(s.b[:])
	copy(s.b[:], b[head+blockSize:])
	subtle.XORBytes(s.b[:], s.b[:], s.a[:])
	s.block.Encrypt(s.b[:], s.b[:])
	copy(b[head:], s.b[:])
	copy(b[head+blockSize:], s.a[:last])
}

// sign appends the checksum over data and header.
func (s *signer) sign(b []byte, header []byte, data ...[]byte) []byte {
	s.hash.Reset()
	for _, d := range data {
		s.hash.Write(d)
	}
	s.hash.Write(header)
	return append(b, s.hash.Sum(s.sum[:0])[:s.mac]...)
}
