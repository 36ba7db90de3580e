package krb5

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/cryptobyte"
)

// Ticket is what a client needs to prove its identity to a service.
type Ticket struct {
	Client  Principal
	Service string    // for messages to people
	Message []byte    // the Ticket as the KDC made it
	Session Key       // its session key
	End     time.Time // of its validity
}

// Request is the creation of a context, from the client's side.
type Request struct {
	ticket *Ticket
	token  []byte
	made   time.Time
	sub    Key
	next   uint32
}

// checksumGSS is the type of the Authenticator's checksum, which holds flags (RFC 4121,
// section 4.1.1).
const checksumGSS = 0x8003

// Flags of a context: mutual authentication, detection of replays and of missing tokens,
// privacy and integrity.
const (
	flagMutual   = 2
	contextFlags = flagMutual | 4 | 8 | 16 | 32
)

// NewRequest begins the creation of a context. Each Request is for one attempt: the service
// accepts an Authenticator only once.
func NewRequest(t *Ticket, now time.Time) (*Request, error) {
	if !t.Session.usable() {
		return nil, fmt.Errorf("contexts of %v are not supported: ask the KDC for one of AES", t.Session.EType)
	}
	sub, _ := NewKey(t.Session.EType)
	var seq [4]byte
	_, _ = rand.Read(seq[:]) // cannot fail (crypto/rand)
	r := &Request{ticket: t, sub: sub, made: now.UTC().Truncate(time.Microsecond), next: binary.BigEndian.Uint32(seq[:]) >> 2}
	checksum := binary.LittleEndian.AppendUint32(nil, 16)
	checksum = append(checksum, make([]byte, 16)...) // no channel bindings
	checksum = binary.LittleEndian.AppendUint32(checksum, contextFlags)
	plain, err := tagged(tagAuthenticator, func(b *cryptobyte.Builder) {
		addNumber(b, 0, 5)
		addText(b, 1, t.Client.Realm)
		addPrincipal(b, 2, &t.Client)
		addField(b, 3, func(b *cryptobyte.Builder) {
			b.AddASN1(sequence, func(b *cryptobyte.Builder) {
				addNumber(b, 0, checksumGSS)
				addField(b, 1, func(b *cryptobyte.Builder) { b.AddASN1OctetString(checksum) })
			})
		})
		addNumber(b, 4, int64(r.made.Nanosecond()/1000))
		addTime(b, 5, r.made)
		addKey(b, 6, r.sub)
		addNumber(b, 7, int64(r.next))
	})
	if err != nil {
		return nil, err
	}
	text, err := t.Session.encrypt(plain, usageAuthenticator)
	if err != nil {
		return nil, err
	}
	body, err := tagged(tagAPReq, func(b *cryptobyte.Builder) {
		addNumber(b, 0, 5)
		addNumber(b, 1, tagAPReq)
		addBits(b, 2, [4]byte{0x20}) // mutual-required
		addField(b, 3, func(b *cryptobyte.Builder) { b.AddBytes(t.Message) })
		addEncrypted(b, 4, t.Session.EType, 0, text)
	})
	if err != nil {
		return nil, err
	}
	r.token, err = framed(tokenAPReq, body)
	return r, err
}

// Token is the message for the service.
func (r *Request) Token() []byte { return r.token }

// Finish checks the service's answer, which proves that it has the ticket's key (mutual
// authentication, RFC 4120, section 3.2.5).
func (r *Request) Finish(answer []byte) (*Session, error) {
	id, body, ok := initial(answer)
	if !ok || id != tokenAPRep {
		return nil, errors.New("the service's answer is not an AP-REP of Kerberos")
	}
	e, ok := apRep(body)
	if !ok {
		return nil, errors.New("the service's AP-REP is malformed")
	}
	plain, ok := r.ticket.Session.decrypt(e.cipher, usageAPRep)
	if !ok {
		return nil, errors.New("the service could not prove that it has the ticket's key: it may be an impostor")
	}
	f, ok := fields(plain, tagEncAPRepPart)
	if !ok {
		return nil, errors.New("the service's AP-REP is malformed")
	}
	made, ok1 := f.time(0)
	micro, ok2 := f.number(1)
	if !ok1 || !ok2 || !made.Equal(r.made.Truncate(time.Second)) || micro != int64(r.made.Nanosecond()/1000) {
		return nil, errors.New("the service answers to another request")
	}
	var acceptor Key
	if f[2] != nil {
		if !acceptor.decode(f[2]) {
			return nil, errors.New("the service's AP-REP is malformed")
		}
		if acceptor = clone(acceptor); !acceptor.usable() {
			return nil, fmt.Errorf("the service wants a context of %v, which is not supported", acceptor.EType)
		}
	}
	return newSession(initiator, r.sub, r.ticket.Session, acceptor, r.next), nil
}
