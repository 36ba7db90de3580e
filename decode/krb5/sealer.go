package krb5

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/subtle"
	"hash"
)

const blockSize = aes.BlockSize

// sealer decrypts any number of messages of one key and usage without allocations. It keeps the
// derived keys, unlike the library, which derives them for each message and copies the message
// several times.
type sealer struct {
	block     cipher.Block
	hash      hash.Hash
	mac       int
	cipherMAC bool

	cbc        cipher.BlockMode
	iv         ivSetter // cbc, if it can start again
	out        cipher.BlockMode
	outIV      ivSetter
	zero, a, b [blockSize]byte
	sum        [64]byte
}

type ivSetter interface{ SetIV([]byte) }

func newSealer(k *Key, usage uint32) (*sealer, error) {
	p := k.EType.profile()
	ke, err := k.derive(usage, keyEncryption)
	if err != nil {
		return nil, err
	}
	ki, err := k.derive(usage, keyIntegrity)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(ke)
	if err != nil {
		return nil, err
	}
	return &sealer{block: block, hash: hmac.New(p.hash, ki), mac: p.mac, cipherMAC: p.cipherMAC}, nil
}

// open checks and decrypts a message: its ciphertext of at least a block, then
// its HMAC. dst has the length of the ciphertext and gets the plaintext with the
// confounder before it.
func (s *sealer) open(dst, message []byte) bool {
	n := len(message) - s.mac
	text := message[:n]
	if s.cipherMAC {
		s.hash.Reset()
		s.hash.Write(s.zero[:])
		s.hash.Write(text)
	}
	s.decrypt(dst, text)
	if !s.cipherMAC {
		s.hash.Reset()
		s.hash.Write(dst)
	}
	return subtle.ConstantTimeCompare(s.hash.Sum(s.sum[:0])[:s.mac], message[n:]) == 1
}

// decrypt reverses AES-CBC with ciphertext stealing and an initial vector of
// zeros (RFC 3962, section 5): the last two blocks are swapped, and the last one
// is cut to the plaintext's length.
func (s *sealer) decrypt(dst, src []byte) {
	n := len(src)
	if n == blockSize {
		s.block.Decrypt(dst, src)
		return
	}
	last := (n-1)%blockSize + 1
	head := n - blockSize - last
	s.chain(dst[:head], src[:head])
	previous := s.zero[:]
	if head > 0 {
		previous = src[head-blockSize : head]
	}
	s.block.Decrypt(s.a[:], src[head:head+blockSize])
	stolen := src[head+blockSize:]
	copy(s.b[:], stolen)
	copy(s.b[last:], s.a[last:])
	subtle.XORBytes(dst[head+blockSize:], s.a[:last], stolen)
	s.block.Decrypt(s.a[:], s.b[:])
	subtle.XORBytes(dst[head:head+blockSize], s.a[:], previous)
}

// chain decrypts whole blocks from the start of a message.
func (s *sealer) chain(dst, src []byte) {
	if len(src) == 0 {
		return
	}
	if s.iv == nil {
		s.cbc = cipher.NewCBCDecrypter(s.block, s.zero[:])
		s.iv, _ = s.cbc.(ivSetter)
	} else {
		s.iv.SetIV(s.zero[:])
	}
	s.cbc.CryptBlocks(dst, src)
}

// signer computes checksums of one key and usage.
type signer struct {
	hash hash.Hash
	mac  int
	sum  [64]byte
}

func newSigner(k *Key, usage uint32) (*signer, error) {
	p := k.EType.profile()
	kc, err := k.derive(usage, keyChecksum)
	if err != nil {
		return nil, err
	}
	return &signer{hash: hmac.New(p.hash, kc), mac: p.mac}, nil
}

// verify checks the checksum over data and header.
func (s *signer) verify(data, header, sum []byte) bool {
	if len(sum) != s.mac {
		return false
	}
	s.hash.Reset()
	s.hash.Write(data)
	s.hash.Write(header)
	return subtle.ConstantTimeCompare(s.hash.Sum(s.sum[:0])[:s.mac], sum) == 1
}
