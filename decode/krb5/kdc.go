package krb5

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Application tags of the exchanges with a KDC (RFC 4120, section 5.10).
const (
	tagASReq         = 10
	tagASRep         = 11
	tagTGSReq        = 12
	tagTGSRep        = 13
	tagEncASRepPart  = 25
	tagEncTGSRepPart = 26
	tagError         = 30
)

// Key usages of these exchanges (RFC 4120, section 7.5.1).
const (
	usageTimestamp        = 1
	usageASRep            = 3
	usageTGSChecksum      = 6
	usageTGSAuthenticator = 7
	usageTGSRep           = 8
)

// Types of PA-DATA (section 7.5.2).
const (
	paTGSReq       = 1
	paEncTimestamp = 2
)

// checksums are the types of the checksums that go with encryption types (RFC 3962,
// section 7; RFC 8009, section 6).
var checksums = map[EType]int64{AES128SHA1: 15, AES256SHA1: 16, AES128SHA256: 19, AES256SHA384: 20}

// ETypes are the encryption types that contexts may have, the preferred ones first.
var ETypes = []EType{AES256SHA384, AES256SHA1, AES128SHA256, AES128SHA1}

// KDCRequest is a request to a KDC.
type KDCRequest struct {
	message []byte
	nonce   int64
	client  Principal
	service Principal
	reply   uint8 // tag of the reply
	part    uint8 // tag of its encrypted part
	usage   uint32
	keys    func(e EType, kvno uint32) []Key // that the reply may be encrypted with
}

// KDCError is an error from a KDC (RFC 4120, section 5.9.1).
type KDCError struct {
	Code int64
	Text string // of the KDC, fit to be shown
}

// Codes of errors that a client can do something about (section 7.5.9).
const (
	KDCUnknownClient  = 6
	KDCUnknownService = 7
	KDCNoEType        = 14
	KDCPreauthFailed  = 24
	KDCSkew           = 37
)

var kdcErrors = map[int64]string{
	KDCUnknownClient: "the KDC does not know the client", KDCUnknownService: "the KDC does not know the service",
	KDCNoEType: "the KDC does not support the encryption type", 18: "the account is locked or has expired", 23: "the key has expired",
	KDCPreauthFailed: "the key is not the client's (any more)", 32: "the ticket has expired", KDCSkew: "the clocks of KDC and client differ too much",
}

func (e *KDCError) Error() string {
	s, ok := kdcErrors[e.Code]
	if !ok {
		s = "the KDC refused with error " + strconv.FormatInt(e.Code, 10)
	}
	if e.Text != "" {
		s += " (" + e.Text + ")"
	}
	return s
}

// Keys are the keys of a principal in the keytab of an encryption type, the newest first.
func (k *Keytab) Keys(principal string, e EType) []Key {
	var list []*entry
	for i := range k.entries {
		if x := &k.entries[i]; x.principal == principal && x.key.EType == e && x.key.usable() {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b *entry) int { return int(b.kvno) - int(a.kvno) })
	var keys []Key
	for _, x := range list {
		keys = append(keys, x.key)
	}
	return keys
}

// Principals are those that the keytab has keys of, each once.
func (k *Keytab) Principals() []string {
	var all []string
	for i := range k.entries {
		if p := k.entries[i].principal; !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// NewASRequest asks for a ticket-granting ticket, with a key of the client of a type. The
// lifetime of tickets is the KDC's choice.
func NewASRequest(client Principal, tab *Keytab, e EType, now time.Time) (*KDCRequest, error) {
	keys := tab.Keys(client.String(), e)
	if len(keys) == 0 {
		return nil, fmt.Errorf("the keytab has no key of %s of type %v", client.String(), e)
	}
	r := &KDCRequest{
		client: client, service: Principal{Realm: client.Realm, Type: 2, Parts: []string{"krbtgt", client.Realm}},
		reply: tagASRep, part: tagEncASRepPart, usage: usageASRep,
		keys: func(e EType, _ uint32) []Key { return tab.Keys(client.String(), e) },
	}
	now = now.UTC().Truncate(time.Microsecond)
	stamp, err := build(func(b *cryptobyte.Builder) {
		b.AddASN1(sequence, func(b *cryptobyte.Builder) {
			addTime(b, 0, now)
			addNumber(b, 1, int64(now.Nanosecond()/1000))
		})
	})
	if err != nil {
		return nil, err
	}
	text, err := keys[0].encrypt(stamp, usageTimestamp)
	if err != nil {
		return nil, err
	}
	proof, err := build(func(b *cryptobyte.Builder) { addEncryptedData(b, e, 0, text) })
	if err != nil {
		return nil, err
	}
	body, err := r.body(&client, now, e)
	if err != nil {
		return nil, err
	}
	return r, r.finish(tagASReq, paEncTimestamp, proof, body)
}

// NewTGSRequest asks for a ticket for a service, with a ticket-granting ticket.
func NewTGSRequest(granting *Ticket, service Principal, now time.Time) (*KDCRequest, error) {
	session := granting.Session
	if !session.usable() {
		return nil, fmt.Errorf("a ticket with a key of %v is not supported: ask the KDC for one of AES (permitted_enctypes)", session.EType)
	}
	r := &KDCRequest{
		client: granting.Client, service: service, reply: tagTGSRep, part: tagEncTGSRepPart, usage: usageTGSRep,
		keys: func(e EType, _ uint32) []Key {
			if e != session.EType {
				return nil
			}
			return []Key{session}
		},
	}
	now = now.UTC().Truncate(time.Microsecond)
	body, err := r.body(nil, now, 0)
	if err != nil {
		return nil, err
	}
	signer, err := newSigner(&session, usageTGSChecksum)
	if err != nil {
		return nil, err
	}
	plain, err := tagged(tagAuthenticator, func(b *cryptobyte.Builder) {
		addNumber(b, 0, 5)
		addText(b, 1, granting.Client.Realm)
		addPrincipal(b, 2, &granting.Client)
		addField(b, 3, func(b *cryptobyte.Builder) {
			b.AddASN1(sequence, func(b *cryptobyte.Builder) {
				addNumber(b, 0, checksums[session.EType])
				addField(b, 1, func(b *cryptobyte.Builder) { b.AddASN1OctetString(signer.sign(nil, nil, body)) })
			})
		})
		addNumber(b, 4, int64(now.Nanosecond()/1000))
		addTime(b, 5, now)
	})
	if err != nil {
		return nil, err
	}
	text, err := session.encrypt(plain, usageTGSAuthenticator)
	if err != nil {
		return nil, err
	}
	proof, err := tagged(tagAPReq, func(b *cryptobyte.Builder) {
		addNumber(b, 0, 5)
		addNumber(b, 1, tagAPReq)
		addBits(b, 2, [4]byte{})
		addField(b, 3, func(b *cryptobyte.Builder) { b.AddBytes(granting.Message) })
		addEncrypted(b, 4, session.EType, 0, text)
	})
	if err != nil {
		return nil, err
	}
	return r, r.finish(tagTGSReq, paTGSReq, proof, body)
}

func addEncryptedData(b *cryptobyte.Builder, e EType, kvno int64, text []byte) {
	b.AddASN1(sequence, func(b *cryptobyte.Builder) {
		addNumber(b, 0, int64(e))
		if kvno > 0 {
			addNumber(b, 1, kvno)
		}
		addField(b, 2, func(b *cryptobyte.Builder) { b.AddASN1OctetString(text) })
	})
}

// body makes KDC-REQ-BODY. first, unless it is 0, is the preferred encryption type.
func (r *KDCRequest) body(client *Principal, now time.Time, first EType) ([]byte, error) {
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // cannot fail (crypto/rand)
	r.nonce = int64(binary.BigEndian.Uint32(nonce[:]) >> 1)
	return build(func(b *cryptobyte.Builder) {
		b.AddASN1(sequence, func(b *cryptobyte.Builder) {
			addBits(b, 0, [4]byte{})
			if client != nil {
				addPrincipal(b, 1, client)
			}
			addText(b, 2, r.service.Realm)
			addPrincipal(b, 3, &r.service)
			addTime(b, 5, now.Add(24*time.Hour))
			addNumber(b, 7, r.nonce)
			addField(b, 8, func(b *cryptobyte.Builder) {
				b.AddASN1(sequence, func(b *cryptobyte.Builder) {
					if first != 0 {
						b.AddASN1Int64(int64(first))
					}
					for _, e := range ETypes {
						if e != first {
							b.AddASN1Int64(int64(e))
						}
					}
				})
			})
		})
	})
}

// finish makes KDC-REQ (section 5.4.1).
func (r *KDCRequest) finish(tag uint8, kind int64, proof, body []byte) (err error) {
	r.message, err = tagged(tag, func(b *cryptobyte.Builder) {
		addNumber(b, 1, 5)
		addNumber(b, 2, int64(tag))
		addField(b, 3, func(b *cryptobyte.Builder) {
			b.AddASN1(sequence, func(b *cryptobyte.Builder) {
				b.AddASN1(sequence, func(b *cryptobyte.Builder) {
					addNumber(b, 1, kind)
					addField(b, 2, func(b *cryptobyte.Builder) { b.AddASN1OctetString(proof) })
				})
			})
		})
		addField(b, 4, func(b *cryptobyte.Builder) { b.AddBytes(body) })
	})
	return err
}

// Bytes is the message for the KDC.
func (r *KDCRequest) Bytes() []byte { return r.message }

var errReply = errors.New("the KDC's reply is malformed")

// Reply decodes the KDC's answer, which may be a KDCError.
func (r *KDCRequest) Reply(b []byte) (*Ticket, error) {
	if e, ok := fields(b, tagError); ok {
		code, ok := e.number(6)
		if !ok {
			return nil, errReply
		}
		var text cryptobyte.String
		in := e[11]
		_ = in != nil && in.ReadASN1(&text, asn1.GeneralString)
		return nil, &KDCError{Code: code, Text: printable(string(text))}
	}
	f, ok := fields(b, r.reply)
	if !ok {
		return nil, errReply
	}
	client, ok := f.principal(3, 4)
	if !ok || !client.equal(&r.client) || f[5] == nil {
		return nil, errReply
	}
	var enc encryptedData
	if in := f[6]; !enc.decodeAfter(&in) {
		return nil, errReply
	}
	for _, k := range r.keys(enc.etype, enc.kvno) {
		plain, ok := k.decrypt(enc.cipher, r.usage)
		if !ok {
			continue
		}
		return r.ticket(f[5], plain)
	}
	return nil, errors.New("the KDC's reply is not encrypted with the client's key: the key was changed, or somebody else has answered")
}

// ticket reads EncKDCRepPart.
func (r *KDCRequest) ticket(message, plain []byte) (*Ticket, error) {
	p, ok := fields(plain, r.part)
	if !ok { // implementations mix them up (section 5.4.2)
		p, ok = fields(plain, tagEncASRepPart+tagEncTGSRepPart-r.part)
	}
	t := &Ticket{Client: r.client, Message: slices.Clone(message)}
	if !ok || !t.Session.decode(p[0]) {
		return nil, errReply
	}
	t.Session = clone(t.Session)
	nonce, ok1 := p.number(2)
	end, ok2 := p.time(7)
	service, ok3 := p.principal(9, 10)
	if !ok1 || !ok2 || !ok3 || nonce != r.nonce {
		return nil, errReply
	}
	if !service.equal(&r.service) {
		return nil, fmt.Errorf("the KDC gave a ticket for %s: services of other realms are not supported", printable(service.String()))
	}
	t.Service, t.End = service.String(), end
	return t, nil
}
