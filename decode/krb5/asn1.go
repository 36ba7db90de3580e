package krb5

import (
	"strings"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Application tags of RFC 4120, section 5.10.
const (
	tagTicket        = 1
	tagAuthenticator = 2
	tagEncTicketPart = 3
	tagAPReq         = 14
	tagAPRep         = 15
	tagEncAPRepPart  = 27
)

// Key usages of RFC 4120, section 7.5.1.
const (
	usageTicket        = 2
	usageAuthenticator = 11
	usageAPRep         = 12
)

// maxToken bounds the tokens of a context's creation in bytes. A ticket with the
// largest authorization data that Windows allows is smaller.
const maxToken = 128 << 10

func application(n uint8) asn1.Tag { return asn1.Tag(0x60 | n) }

func explicit(n uint8) asn1.Tag { return asn1.Tag(n).Constructed().ContextSpecific() }

// message opens an application tag with the SEQUENCE in it.
func message(b []byte, tag uint8) (seq cryptobyte.String, ok bool) {
	s := cryptobyte.String(b)
	var in cryptobyte.String
	ok = s.ReadASN1(&in, application(tag)) && in.ReadASN1(&seq, asn1.SEQUENCE)
	return seq, ok
}

func integer(s *cryptobyte.String, tag uint8, n *int64) bool {
	var in cryptobyte.String
	return s.ReadASN1(&in, explicit(tag)) && in.ReadASN1Integer(n)
}

// encryptedData is EncryptedData (RFC 4120, section 5.2.9).
type encryptedData struct {
	etype  EType
	kvno   uint32 // 0 if it is not said
	cipher []byte
}

func (e *encryptedData) decode(s *cryptobyte.String, tag uint8) bool {
	var in cryptobyte.String
	return s.ReadASN1(&in, explicit(tag)) && e.decodeAfter(&in)
}

// decodeAfter reads what follows the tag of a field.
func (e *encryptedData) decodeAfter(in *cryptobyte.String) bool {
	var seq, value, opt cryptobyte.String
	var etype, kvno int64
	var has bool
	ok := in.ReadASN1(&seq, asn1.SEQUENCE) && integer(&seq, 0, &etype) &&
		seq.ReadOptionalASN1(&opt, &has, explicit(1)) && (!has || opt.ReadASN1Integer(&kvno))
	if !ok || etype != int64(int32(etype)) {
		return false
	}
	e.etype, e.kvno = EType(etype), uint32(kvno)
	var text cryptobyte.String
	ok = seq.ReadASN1(&value, explicit(2)) && value.ReadASN1(&text, asn1.OCTET_STRING)
	e.cipher = text
	return ok
}

// key reads an EncryptionKey after its tag.
func (k *Key) decode(in cryptobyte.String) bool {
	var seq, value, text cryptobyte.String
	var etype int64
	if !in.ReadASN1(&seq, asn1.SEQUENCE) || !integer(&seq, 0, &etype) || etype != int64(int32(etype)) ||
		!seq.ReadASN1(&value, explicit(1)) || !value.ReadASN1(&text, asn1.OCTET_STRING) {
		return false
	}
	k.EType, k.Value = EType(etype), text
	return true
}

// name reads a PrincipalName: its components with slashes between them.
func name(s *cryptobyte.String, tag uint8) (string, bool) {
	var in, seq, list, strs cryptobyte.String
	var kind int64
	if !s.ReadASN1(&in, explicit(tag)) || !in.ReadASN1(&seq, asn1.SEQUENCE) || !integer(&seq, 0, &kind) ||
		!seq.ReadASN1(&list, explicit(1)) || !list.ReadASN1(&strs, asn1.SEQUENCE) {
		return "", false
	}
	var b strings.Builder
	for !strs.Empty() {
		var part cryptobyte.String
		if !strs.ReadASN1(&part, asn1.GeneralString) {
			return "", false
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.Write(part)
	}
	return b.String(), true
}

func realm(s *cryptobyte.String, tag uint8) (string, bool) {
	var in, text cryptobyte.String
	if !s.ReadASN1(&in, explicit(tag)) || !in.ReadASN1(&text, asn1.GeneralString) {
		return "", false
	}
	return string(text), true
}

// apReq is AP-REQ (RFC 4120, section 5.5.1) with its Ticket (5.3).
type apReq struct {
	userToUser    bool
	service       string // principal that the ticket is for
	realm         string // of it
	ticket        encryptedData
	authenticator encryptedData
}

func (a *apReq) decode(b []byte) bool {
	seq, ok := message(b, tagAPReq)
	var version, kind int64
	var in, bits, ticket cryptobyte.String
	ok = ok && integer(&seq, 0, &version) && integer(&seq, 1, &kind) && kind == tagAPReq &&
		seq.ReadASN1(&in, explicit(2)) && in.ReadASN1(&bits, asn1.BIT_STRING) &&
		seq.ReadASN1(&in, explicit(3)) && a.authenticator.decode(&seq, 4)
	if !ok {
		return false
	}
	a.userToUser = len(bits) > 1 && bits[1]&0x40 != 0 // bit 1: use-session-key
	if ticket, ok = message(in, tagTicket); !ok || !integer(&ticket, 0, &version) {
		return false
	}
	r, ok := realm(&ticket, 1)
	if !ok {
		return false
	}
	n, ok := name(&ticket, 2)
	a.service, a.realm = n+"@"+r, r
	return ok && a.ticket.decode(&ticket, 3)
}

// encTicketPart reads the session key and the client of a decrypted ticket. What follows them is useless
// here.
func encTicketPart(b []byte) (k Key, client string, ok bool) {
	seq, ok := message(b, tagEncTicketPart)
	var in cryptobyte.String
	if !ok || !seq.ReadASN1(&in, explicit(0)) || !seq.ReadASN1(&in, explicit(1)) || !k.decode(in) {
		return k, "", false
	}
	r, ok := realm(&seq, 2)
	if !ok {
		return k, "", false
	}
	n, ok := name(&seq, 3)
	return k, n + "@" + r, ok
}

// subkey reads the optional key of a decrypted Authenticator (its field 6) or
// EncAPRepPart (its field 2).
func subkey(b []byte, tag, field uint8) (k Key, has, ok bool) {
	seq, ok := message(b, tag)
	for ok && !seq.Empty() {
		var in cryptobyte.String
		var t asn1.Tag
		if ok = seq.ReadAnyASN1(&in, &t); ok && t == explicit(field) {
			ok = k.decode(in)
			return k, ok, ok
		}
	}
	return k, false, ok
}

// apRep reads the encrypted part of an AP-REP (RFC 4120, section 5.5.2).
func apRep(b []byte) (e encryptedData, ok bool) {
	seq, ok := message(b, tagAPRep)
	var version, kind int64
	ok = ok && integer(&seq, 0, &version) && integer(&seq, 1, &kind) && kind == tagAPRep && e.decode(&seq, 2)
	return e, ok
}
