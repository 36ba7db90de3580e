package krb5

import (
	"crypto/rand"
	"encoding/binary"
	"errors"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Errors of tokens, for errors.Is.
var (
	// ErrToken is a token that is malformed, forged, or from another context.
	ErrToken = errors.New("krb5: the token is not genuine")
	// ErrSequence is a genuine token with another sequence number than the credential's.
	ErrSequence = errors.New("krb5: the sequence number in the token is not that of the credential")
)

// Overhead of tokens in bytes, for the encryption type that needs most.
const (
	MaxMIC  = tokenHeader + 24
	MaxWrap = tokenHeader + blockSize + tokenHeader + 24
)

// Session is one side of an established context: it makes the tokens of its side, and
// checks those of the other. It is not safe for concurrent use.
type Session struct {
	c    context
	t    table // of c
	own  side
	next uint64 // SND_SEQ of the next token
}

func newSession(own side, key, session, acceptor Key, next uint32) *Session {
	s := &Session{own: own, next: uint64(next)}
	s.c.table, s.c.session = &s.t, session
	s.c.initiator.key, s.c.acceptor.key = key, acceptor
	return s
}

// keys are the keys with which this side makes tokens, and their flags (RFC 4121, section 4.2.2).
func (s *Session) keys() (*keys, byte) {
	if s.c.acceptor.key.Value != nil {
		return &s.c.acceptor, byte(s.own) | flagSubkey
	}
	return &s.c.initiator, byte(s.own)
}

// EType is the encryption type of the tokens that this side makes.
func (s *Session) EType() EType {
	k, _ := s.keys()
	return k.key.EType
}

// MICSize is the size in bytes of a MIC token that this side makes.
func (s *Session) MICSize() int {
	k, _ := s.keys()
	return tokenHeader + k.key.EType.profile().mac
}

// header appends the fixed part of a token.
func (s *Session) header(b []byte, id uint16, flags byte, fill uint32) []byte {
	b = binary.BigEndian.AppendUint16(b, id)
	b = append(b, flags, 0xff)
	b = binary.BigEndian.AppendUint32(b, fill)
	b = binary.BigEndian.AppendUint64(b, s.next)
	s.next++
	return b
}

// MIC appends a MIC token over data to b (RFC 4121, section 4.2.6.1).
func (s *Session) MIC(b []byte, data ...[]byte) []byte {
	k, flags := s.keys()
	at := len(b)
	b = s.header(b, tokenMIC, flags, 0xffffffff)
	copy(s.c.scratch[:], b[at:])
	return k.signer(s.own).sign(b, s.c.scratch[:], data...)
}

// Verify checks a MIC token of the other side. The error is ErrToken.
func (s *Session) Verify(token, data []byte) error {
	if s.c.mic(token, data, 1-s.own) != good {
		return ErrToken
	}
	return nil
}

// BeginWrap appends the beginning of a Wrap token (section 4.2.6.2). The plaintext is
// to be appended to the result, and then EndWrap called with at, which is len(b).
func (s *Session) BeginWrap(b []byte) (out []byte, at int) {
	_, flags := s.keys()
	at = len(b)
	// EC and RRC are zero: no filler, no rotation. Linux, MIT and Heimdal accept that, whatever
	// they send themselves.
	b = s.header(b, tokenWrap, flags|flagSealed, 0)
	var confounder [blockSize]byte
	_, _ = rand.Read(confounder[:]) // cannot fail (crypto/rand)
	return append(b, confounder[:]...), at
}

// EndWrap encrypts the plaintext that follows the beginning of a Wrap token at at.
func (s *Session) EndWrap(b []byte, at int) []byte {
	k, _ := s.keys()
	sealer := k.sealer(s.own)
	b = append(b, b[at:at+tokenHeader]...)
	text := len(b) - at - tokenHeader
	var sum [64]byte
	b = append(b, sum[:sealer.mac]...)
	sealer.seal(b[at+tokenHeader:], text)
	return b
}

// WrapSize is the size in bytes of a Wrap token of n bytes of plaintext.
func (s *Session) WrapSize(n int) int {
	k, _ := s.keys()
	return tokenHeader + blockSize + n + tokenHeader + k.key.EType.profile().mac
}

// Unwrap decrypts a Wrap token of the other side, whose plaintext begins with the sequence number
// seq. out.Data is what follows it, until the next use of out. A token that is signed and not
// encrypted is refused: this is for privacy.
func (s *Session) Unwrap(token []byte, seq uint32, out *rpc.Opened) error {
	if len(token) >= tokenHeader && token[2]&flagSealed == 0 {
		return ErrToken
	}
	out.How, out.Data = rpc.NotOpened, nil
	switch s.c.unwrap(token, len(token), 1-s.own, seq, out) {
	case good:
		return nil
	case wrongSequence:
		return ErrSequence
	}
	return ErrToken
}
