package krb5

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

const sequence = asn1.SEQUENCE

// fieldList are the fields of a SEQUENCE by their tags.
type fieldList [16]cryptobyte.String

// fields reads a message whose fields have ascending tags, as all of RFC 4120 have.
func fields(b []byte, tag uint8) (f fieldList, ok bool) {
	seq, ok := message(b, tag)
	last := -1
	for ok && !seq.Empty() {
		var in cryptobyte.String
		var t asn1.Tag
		if !seq.ReadAnyASN1(&in, &t) {
			return f, false
		}
		n := int(t &^ 0xe0)
		if t != explicit(uint8(n)) || n <= last || n >= len(f) {
			return f, false
		}
		last, f[n] = n, in
	}
	return f, ok
}

func (f *fieldList) number(n int) (v int64, ok bool) {
	in := f[n]
	ok = in.ReadASN1Integer(&v)
	return v, ok
}

func (f *fieldList) time(n int) (t time.Time, ok bool) {
	in := f[n]
	var text cryptobyte.String
	if !in.ReadASN1(&text, asn1.GeneralizedTime) {
		return t, false
	}
	t, err := time.Parse(kerberosTime, string(text))
	return t, err == nil
}

// principal reads the realm in field r and the name in field n.
func (f *fieldList) principal(r, n int) (p Principal, ok bool) {
	in := f[r]
	var text, seq, value, list cryptobyte.String
	if !in.ReadASN1(&text, asn1.GeneralString) {
		return p, false
	}
	p.Realm = string(text)
	in = f[n]
	var kind int64
	if !in.ReadASN1(&seq, sequence) || !integer(&seq, 0, &kind) || kind != int64(int32(kind)) ||
		!seq.ReadASN1(&value, explicit(1)) || !value.ReadASN1(&list, sequence) {
		return p, false
	}
	p.Type = int32(kind)
	size := len(p.Realm)
	for !list.Empty() {
		if !list.ReadASN1(&text, asn1.GeneralString) {
			return p, false
		}
		if size += len(text) + 1; size > maxName {
			return p, false
		}
		p.Parts = append(p.Parts, string(text))
	}
	return p, len(p.Parts) > 0
}

func (p *Principal) equal(q *Principal) bool {
	if p.Realm != q.Realm || len(p.Parts) != len(q.Parts) {
		return false
	}
	for i := range p.Parts {
		if p.Parts[i] != q.Parts[i] {
			return false
		}
	}
	return true
}

// Errors of Accept, for errors.Is.
var (
	ErrMalformed   = errors.New("krb5: the token is malformed")
	ErrKey         = errors.New("krb5: no key for the ticket")
	ErrExpired     = errors.New("krb5: the ticket is not valid now")
	ErrSkew        = errors.New("krb5: the client's clock differs too much")
	ErrReplay      = errors.New("krb5: the token was used before")
	ErrUnsupported = errors.New("krb5: not supported")
)

// Skew is how much the clocks of a client and a service may differ.
const Skew = 5 * time.Minute

// Accepted is a context that a service has accepted.
type Accepted struct {
	*Session
	Client Principal
	// Service is the principal that the ticket is for. Its realm is the service's own.
	Service string
	Realm   string
	End     time.Time // of the ticket
	Token   []byte    // the answer; empty if the client does not want one
}

// Fresh says that an Authenticator was not used before, and remembers it until a time.
type Fresh func(id [sha256.Size]byte, until time.Time) bool

// Accept takes the token of a client that wants a context (RFC 4120, section 3.2.3).
func (k *Keytab) Accept(token []byte, now time.Time, fresh Fresh) (*Accepted, error) {
	id, body, ok := initial(token)
	var req apReq
	if !ok || id != tokenAPReq || !req.decode(body) {
		return nil, fmt.Errorf("%w: it is not an AP-REQ of Kerberos", ErrMalformed)
	}
	if req.userToUser {
		return nil, fmt.Errorf("%w: user-to-user authentication", ErrUnsupported)
	}
	part, ok := k.open(req.service, &req.ticket)
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrKey, k.lacks(req.service, &req.ticket))
	}
	a := &Accepted{Service: req.service, Realm: req.realm}
	session, err := a.ticket(part, now)
	if err != nil {
		return nil, err
	}
	plain, ok := session.decrypt(req.authenticator.cipher, usageAuthenticator)
	if !ok {
		return nil, fmt.Errorf("%w: the Authenticator is not of the ticket's session key", ErrMalformed)
	}
	made, wanted, sub, err := a.authenticator(plain, session, now)
	if err != nil {
		return nil, err
	}
	// What has been encrypted with the session key cannot be changed, so that the same
	// Authenticator is always the same bytes.
	if !fresh(sha256.Sum256(req.authenticator.cipher), made.Add(Skew)) {
		return nil, ErrReplay
	}
	var acceptor Key
	var next uint32
	if wanted&flagMutual != 0 {
		acceptor, _ = NewKey(sub.EType)
		var seq [4]byte
		_, _ = rand.Read(seq[:]) // cannot fail (crypto/rand)
		next = binary.BigEndian.Uint32(seq[:]) >> 2
		if a.Token, err = answer(session, acceptor, made, next); err != nil {
			return nil, err
		}
	}
	a.Session = newSession(1, sub, session, acceptor, next)
	return a, nil
}

// ticket reads and checks a decrypted ticket. It returns the session key.
func (a *Accepted) ticket(plain []byte, now time.Time) (session Key, err error) {
	malformed := fmt.Errorf("%w: the ticket", ErrMalformed)
	t, ok := fields(plain, tagEncTicketPart)
	if !ok {
		return session, malformed
	}
	var flags []byte
	in := t[0]
	if !in.ReadASN1BitStringAsBytes(&flags) || len(flags) == 0 || !session.decode(t[1]) {
		return session, malformed
	}
	if a.Client, ok = t.principal(2, 3); !ok {
		return session, malformed
	}
	at := 6 // starttime
	if t[at] == nil {
		at = 5 // authtime
	}
	begin, ok1 := t.time(at)
	end, ok2 := t.time(7)
	if a.End = end; !ok1 || !ok2 {
		return session, malformed
	}
	if flags[0]&1 != 0 || now.Add(Skew).Before(begin) || now.Add(-Skew).After(end) { // bit 7: invalid
		return session, fmt.Errorf("%w: from %s to %s", ErrExpired, begin.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	session = clone(session)
	if !session.usable() {
		return session, fmt.Errorf("%w: contexts of %v", ErrUnsupported, session.EType)
	}
	return session, nil
}

// authenticator reads and checks a decrypted Authenticator: when it was made, the flags
// that the client wants, and its subkey, or else the session key.
func (a *Accepted) authenticator(plain []byte, session Key, now time.Time) (made time.Time, wanted uint32, sub Key, err error) {
	malformed := fmt.Errorf("%w: the Authenticator", ErrMalformed)
	f, ok := fields(plain, tagAuthenticator)
	if !ok {
		return made, 0, sub, malformed
	}
	client, ok := f.principal(1, 2)
	micro, ok1 := f.number(4)
	made, ok2 := f.time(5)
	if !ok || !ok1 || !ok2 || micro < 0 || micro > 999999 || !client.equal(&a.Client) {
		return made, 0, sub, malformed
	}
	if made = made.Add(time.Duration(micro) * time.Microsecond); made.Before(now.Add(-Skew)) || made.After(now.Add(Skew)) {
		return made, 0, sub, fmt.Errorf("%w: it is %s there", ErrSkew, made.Format(time.RFC3339))
	}
	if wanted, ok = checksumFlags(f[3]); !ok {
		return made, 0, sub, fmt.Errorf("%w: the Authenticator has no checksum of GSS-API", ErrMalformed)
	}
	sub = session
	if f[6] != nil {
		if !sub.decode(f[6]) {
			return made, 0, sub, malformed
		}
		if sub = clone(sub); !sub.usable() {
			return made, 0, sub, fmt.Errorf("%w: contexts of %v", ErrUnsupported, sub.EType)
		}
	}
	return made, wanted, sub, nil
}

// checksumFlags reads the flags in the Authenticator's checksum. A hash of channel
// bindings may stand there; there are no channels here to bind to.
func checksumFlags(in cryptobyte.String) (flags uint32, ok bool) {
	var seq, value, text cryptobyte.String
	var kind int64
	if !in.ReadASN1(&seq, sequence) || !integer(&seq, 0, &kind) || kind != checksumGSS ||
		!seq.ReadASN1(&value, explicit(1)) || !value.ReadASN1(&text, asn1.OCTET_STRING) {
		return 0, false
	}
	if len(text) < 24 || binary.LittleEndian.Uint32(text) != 16 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(text[20:]), true
}

// answer makes an AP-REP (RFC 4120, section 5.5.2).
func answer(session, sub Key, made time.Time, next uint32) ([]byte, error) {
	plain, err := tagged(tagEncAPRepPart, func(b *cryptobyte.Builder) {
		addTime(b, 0, made)
		addNumber(b, 1, int64(made.Nanosecond()/1000))
		addKey(b, 2, sub)
		addNumber(b, 3, int64(next))
	})
	if err != nil {
		return nil, err
	}
	text, err := session.encrypt(plain, usageAPRep)
	if err != nil {
		return nil, err
	}
	body, err := tagged(tagAPRep, func(b *cryptobyte.Builder) {
		addNumber(b, 0, 5)
		addNumber(b, 1, tagAPRep)
		addEncrypted(b, 2, session.EType, 0, text)
	})
	if err != nil {
		return nil, err
	}
	return framed(tokenAPRep, body)
}
