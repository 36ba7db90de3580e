package krb5

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Principal is the name of a user or a service.
type Principal struct {
	Realm string
	Type  int32 // name-type, RFC 4120, section 6.2
	Parts []string
}

// ParsePrincipal reads NAME[/INSTANCE][@REALM]. The realm may be empty.
func ParsePrincipal(s string) (p Principal, err error) {
	name, realm, _ := strings.Cut(s, "@")
	p = Principal{Realm: realm, Type: 1, Parts: strings.Split(name, "/")}
	if slices.Contains(p.Parts, "") {
		return p, errors.New("a principal is NAME, NAME/INSTANCE or one of these with @REALM")
	}
	if strings.ContainsAny(s, "\\\x00") || len(s) > maxName {
		return p, errors.New("the principal's name is too long, or has characters that are not supported")
	}
	return p, nil
}

// maxName bounds names of principals in bytes.
const maxName = 1024

// Name is the principal without its realm.
func (p *Principal) Name() string { return strings.Join(p.Parts, "/") }

// String is NAME@REALM.
func (p *Principal) String() string {
	if p.Realm == "" {
		return p.Name()
	}
	return p.Name() + "@" + p.Realm
}

// The builders of ASN.1 that messages consist of (RFC 4120, section 5).

func build(f cryptobyte.BuilderContinuation) ([]byte, error) {
	var b cryptobyte.Builder
	f(&b)
	return b.Bytes()
}

func addField(b *cryptobyte.Builder, n uint8, f cryptobyte.BuilderContinuation) {
	b.AddASN1(explicit(n), f)
}

func addNumber(b *cryptobyte.Builder, n uint8, v int64) {
	addField(b, n, func(b *cryptobyte.Builder) { b.AddASN1Int64(v) })
}

func addText(b *cryptobyte.Builder, n uint8, s string) {
	addField(b, n, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.GeneralString, func(b *cryptobyte.Builder) { b.AddBytes([]byte(s)) })
	})
}

func addBits(b *cryptobyte.Builder, n uint8, bits [4]byte) {
	addField(b, n, func(b *cryptobyte.Builder) { b.AddASN1BitString(bits[:]) })
}

// kerberosTime is the form of KerberosTime (RFC 4120, section 5.2.3).
const kerberosTime = "20060102150405Z"

func addTime(b *cryptobyte.Builder, n uint8, t time.Time) {
	addField(b, n, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.GeneralizedTime, func(b *cryptobyte.Builder) { b.AddBytes([]byte(t.UTC().Format(kerberosTime))) })
	})
}

func addPrincipal(b *cryptobyte.Builder, n uint8, p *Principal) {
	addField(b, n, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			addNumber(b, 0, int64(p.Type))
			addField(b, 1, func(b *cryptobyte.Builder) {
				b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
					for _, part := range p.Parts {
						b.AddASN1(asn1.GeneralString, func(b *cryptobyte.Builder) { b.AddBytes([]byte(part)) })
					}
				})
			})
		})
	})
}

func addKey(b *cryptobyte.Builder, n uint8, k Key) {
	addField(b, n, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			addNumber(b, 0, int64(k.EType))
			addField(b, 1, func(b *cryptobyte.Builder) { b.AddASN1OctetString(k.Value) })
		})
	})
}

func addEncrypted(b *cryptobyte.Builder, n uint8, e EType, kvno int64, text []byte) {
	addField(b, n, func(b *cryptobyte.Builder) { addEncryptedData(b, e, kvno, text) })
}

// tagged makes a message: an application tag and a SEQUENCE in it.
func tagged(tag uint8, f cryptobyte.BuilderContinuation) ([]byte, error) {
	return build(func(b *cryptobyte.Builder) {
		b.AddASN1(application(tag), func(b *cryptobyte.Builder) { b.AddASN1(asn1.SEQUENCE, f) })
	})
}

// framed makes a token of context creation (RFC 2743, section 3.1).
func framed(id uint16, body []byte) ([]byte, error) {
	return build(func(b *cryptobyte.Builder) {
		b.AddASN1(application(0), func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.OBJECT_IDENTIFIER, func(b *cryptobyte.Builder) { b.AddBytes(mechanism) })
			b.AddUint16(id)
			b.AddBytes(body)
		})
	})
}

// encrypt makes a message of RFC 3961 with a confounder. k must be usable.
func (k *Key) encrypt(plain []byte, usage uint32) ([]byte, error) {
	s, err := newSealer(k, usage)
	if err != nil {
		return nil, err
	}
	n := blockSize + len(plain)
	b := make([]byte, n+s.mac)
	_, _ = rand.Read(b[:blockSize]) // cannot fail (crypto/rand)
	copy(b[blockSize:], plain)
	s.seal(b, n)
	return b, nil
}

// NewKey is a random key of a type that contexts may have.
func NewKey(e EType) (Key, bool) {
	p := e.profile()
	if p == nil {
		return Key{}, false
	}
	k := Key{e, make([]byte, p.key)}
	_, _ = rand.Read(k.Value) // cannot fail (crypto/rand)
	return k, true
}
