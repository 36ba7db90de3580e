package krb5

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

// mechanism is 1.2.840.113554.1.2.2 (RFC 1964, section 1).
var mechanism = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// Tokens of context creation (RFC 4121, section 4.1).
const (
	tokenAPReq = 0x0100
	tokenAPRep = 0x0200
)

// initial reads the framing of a token of context creation (RFC 2743, section 3.1): its type, and
// the Kerberos message in it.
func initial(token []byte) (id uint16, body []byte, ok bool) {
	s := cryptobyte.String(token)
	var in, oid cryptobyte.String
	if len(token) > maxToken || !s.ReadASN1(&in, application(0)) || !in.ReadASN1(&oid, asn1.OBJECT_IDENTIFIER) ||
		!bytes.Equal(oid, mechanism) || !in.ReadUint16(&id) {
		return 0, nil, false
	}
	return id, in, true
}

// MIC and Wrap tokens (RFC 4121, section 4.2):
//
//	 0         2       3       4         6         8                16
//	+---------+-------+-------+---------+---------+----------------+
//	| TOK_ID  | Flags | FF    | EC      | RRC     | SND_SEQ        | …
//	+---------+-------+-------+---------+---------+----------------+
//
// In a MIC token EC and RRC are FF as well.
const (
	tokenMIC    = 0x0404
	tokenWrap   = 0x0504
	tokenHeader = 16

	flagAcceptor = 1 // sent by the acceptor
	flagSealed   = 2 // encrypted
	flagSubkey   = 4 // with the acceptor's subkey
)

// side is who sent a token.
type side uint8

const (
	initiator side = iota
	acceptor
)

// Key usages of RFC 4121, section 2, by side.
var (
	usageSeal = [2]uint32{24, 22}
	usageSign = [2]uint32{25, 23}
)

// keys are a base key and the keys derived from it, when they are first needed.
type keys struct {
	key  Key
	seal [2]*sealer
	sign [2]*signer
	wrap [2]*signer // of unencrypted Wrap tokens
}

func (k *keys) sealer(s side) *sealer {
	if k.seal[s] == nil {
		k.seal[s], _ = newSealer(&k.key, usageSeal[s])
	}
	return k.seal[s]
}

func (k *keys) signer(s side) *signer {
	if k.sign[s] == nil {
		k.sign[s], _ = newSigner(&k.key, usageSign[s])
	}
	return k.sign[s]
}

func (k *keys) wrapper(s side) *signer {
	if k.wrap[s] == nil {
		k.wrap[s], _ = newSigner(&k.key, usageSeal[s])
	}
	return k.wrap[s]
}

// header checks the first four bytes of a token that s has sent and picks the
// keys that it is made with.
func (c *context) header(token []byte, id uint16, s side) (*keys, verdict) {
	if len(token) < tokenHeader || binary.BigEndian.Uint16(token) != id || token[3] != 0xff {
		return nil, tokenMalformed
	}
	flags := token[2]
	if flags&flagAcceptor != byte(s) {
		return nil, tokenReflected
	}
	if flags&flagSubkey == 0 {
		return &c.initiator, good
	}
	if c.acceptor.key.Value == nil {
		return nil, noSubkey
	}
	return &c.acceptor, good
}

// mic checks a MIC token over data.
func (c *context) mic(token, data []byte, s side) verdict {
	k, v := c.header(token, tokenMIC, s)
	if v != good {
		return v
	}
	signer := k.signer(s)
	if signer == nil || !signer.verify(data, token[:tokenHeader], token[tokenHeader:]) {
		return wrongMIC
	}
	return good
}

// unwrap opens a Wrap token of full bytes, of which the capture may hold less.
// The plaintext is a sequence number, which must be seq, and arguments or
// results.
func (c *context) unwrap(token []byte, full int, s side, seq uint32, out *rpc.Opened) verdict {
	k, v := c.header(token, tokenWrap, s)
	if v != good {
		if len(token) < tokenHeader && full >= tokenHeader {
			return cut
		}
		return v
	}
	sealer := k.sealer(s)
	if sealer == nil {
		return tokenMalformed
	}
	ec, rrc := int(binary.BigEndian.Uint16(token[4:])), int(binary.BigEndian.Uint16(token[6:]))
	if token[2]&flagSealed == 0 {
		return c.unsealed(k.wrapper(s), token, full, seq, out, ec, rrc)
	}
	text := full - tokenHeader - sealer.mac // ciphertext
	length := text - blockSize - tokenHeader - ec
	if length < 4 {
		return tokenMalformed
	}
	if len(token) < full {
		return prefix(sealer, token[tokenHeader:], text, length, rrc, seq, out)
	}
	body := c.straight(token[tokenHeader:], rrc)
	b := out.Buffer(text)
	if !sealer.open(b, body) {
		return wrongMIC
	}
	// The header comes again at the end, with an RRC of zero.
	copied := b[len(b)-tokenHeader:]
	if !bytes.Equal(copied[:6], token[:6]) || copied[6] != 0 || copied[7] != 0 || !bytes.Equal(copied[8:], token[8:tokenHeader]) {
		return wrongHeader
	}
	plain := b[blockSize : blockSize+length : blockSize+length]
	out.How, out.Data, out.Length, out.Sequence = rpc.Decrypted, plain[4:], length-4, binary.BigEndian.Uint32(plain)
	if out.Sequence != seq {
		return wrongSequence
	}
	return good
}

// unsealed verifies a Wrap token that is only signed: the plaintext, then EC bytes of checksum
// over it and the header with EC and RRC of zero.
func (c *context) unsealed(signer *signer, token []byte, full int, seq uint32, out *rpc.Opened, ec, rrc int) verdict {
	length := full - tokenHeader - ec
	switch {
	case signer == nil || length < 4:
		return tokenMalformed
	case len(token) < full:
		return cut
	}
	body := c.straight(token[tokenHeader:], rrc)
	copy(c.scratch[:], token[:tokenHeader])
	clear(c.scratch[4:8])
	if !signer.verify(body[:length], c.scratch[:], body[length:]) {
		return wrongMIC
	}
	plain := out.Buffer(length)
	copy(plain, body)
	out.How, out.Data, out.Length, out.Sequence = rpc.Decrypted, plain[4:], length-4, binary.BigEndian.Uint32(plain)
	if out.Sequence != seq {
		return wrongSequence
	}
	return good
}

// straight undoes the rotation to the right by rrc bytes (RFC 4121, section
// 4.2.5).
func (c *context) straight(b []byte, rrc int) []byte {
	if len(b) == 0 || rrc%len(b) == 0 {
		return b
	}
	rrc %= len(b)
	t := c.table
	t.rotated = append(append(t.rotated[:0], b[rrc:]...), b[:rrc]...)
	r := t.rotated
	if cap(r) > maxRotated {
		t.rotated = nil
	}
	return r
}

// maxRotated is the largest buffer that is kept.
const maxRotated = 1 << 20

// prefix decrypts the captured part of a token: the beginning of a chain of blocks can be decrypted without
// the rest. Its checksum cannot be verified, so the sequence number must be right.
func prefix(sealer *sealer, body []byte, text, length, rrc int, seq uint32, out *rpc.Opened) verdict {
	if rrc != 0 {
		return cut
	}
	last := (text-1)%blockSize + 1
	n := min(len(body), text-blockSize-last) &^ (blockSize - 1)
	if n < 2*blockSize {
		return cut
	}
	b := out.Buffer(n)
	sealer.chain(b, body[:n])
	plain := b[blockSize:min(n, blockSize+length)]
	if binary.BigEndian.Uint32(plain) != seq {
		return wrongSequence
	}
	out.How, out.Data, out.Length, out.Sequence = rpc.Prefix, plain[4:len(plain):len(plain)], length-4, seq
	return cut
}
