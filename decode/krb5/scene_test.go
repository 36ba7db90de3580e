package krb5

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/types"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// The scene plays client, server and KDC with the library's encryption, so that decryption is
// tested against independent code.

const service, realmName = "nfs/host", "REALM"

// encrypt makes a message of RFC 3961 with its own confounder.
func encrypt(t testing.TB, k Key, usage uint32, plain []byte) []byte {
	t.Helper()
	e, err := crypto.GetEncryptedData(plain, types.EncryptionKey{KeyType: int32(k.EType), KeyValue: k.Value}, usage, 1)
	if err != nil {
		t.Fatal(err)
	}
	return e.Cipher
}

func checksum(t testing.TB, k Key, usage uint32, data []byte) []byte {
	t.Helper()
	e, err := crypto.GetEtype(int32(k.EType))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := e.GetChecksumHash(k.Value, data, usage)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func newKey(e EType) Key {
	n := 16
	switch e {
	case AES256SHA1, AES256SHA384:
		n = 32
	case 16:
		n = 24
	}
	b := make([]byte, n)
	_, _ = rand.Read(b)
	if e == 16 { // parity
		k, _ := crypto.GetEtype(16)
		b = k.RandomToKey(b[:21])
	}
	return Key{e, b}
}

func made(f func(*cryptobyte.Builder)) []byte {
	var b cryptobyte.Builder
	f(&b)
	return b.BytesOrPanic()
}

func field(b *cryptobyte.Builder, n uint8, f cryptobyte.BuilderContinuation) {
	b.AddASN1(explicit(n), f)
}

func number(b *cryptobyte.Builder, n uint8, v int64) {
	field(b, n, func(b *cryptobyte.Builder) { b.AddASN1Int64(v) })
}

func text(b *cryptobyte.Builder, n uint8, s string) {
	field(b, n, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.GeneralString, func(b *cryptobyte.Builder) { b.AddBytes([]byte(s)) })
	})
}

func principal(b *cryptobyte.Builder, n uint8, parts ...string) {
	field(b, n, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			number(b, 0, 1)
			field(b, 1, func(b *cryptobyte.Builder) {
				b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
					for _, p := range parts {
						b.AddASN1(asn1.GeneralString, func(b *cryptobyte.Builder) { b.AddBytes([]byte(p)) })
					}
				})
			})
		})
	})
}

func encrypted(b *cryptobyte.Builder, n uint8, e EType, kvno int64, cipher []byte) {
	field(b, n, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			number(b, 0, int64(e))
			if kvno > 0 {
				number(b, 1, kvno)
			}
			field(b, 2, func(b *cryptobyte.Builder) { b.AddASN1OctetString(cipher) })
		})
	})
}

func keyField(b *cryptobyte.Builder, n uint8, k Key) {
	field(b, n, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			number(b, 0, int64(k.EType))
			field(b, 1, func(b *cryptobyte.Builder) { b.AddASN1OctetString(k.Value) })
		})
	})
}

func app(tag uint8, f cryptobyte.BuilderContinuation) []byte {
	return made(func(b *cryptobyte.Builder) {
		b.AddASN1(application(tag), func(b *cryptobyte.Builder) { b.AddASN1(asn1.SEQUENCE, f) })
	})
}

func inFrame(id uint16, body []byte) []byte {
	return made(func(b *cryptobyte.Builder) {
		b.AddASN1(application(0), func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.OBJECT_IDENTIFIER, func(b *cryptobyte.Builder) { b.AddBytes(mechanism) })
			b.AddUint16(id)
			b.AddBytes(body)
		})
	})
}

// scene is a context between a client and a server.
type scene struct {
	t        testing.TB
	handle   []byte
	session  Key
	sub      Key // of the Authenticator; no value: none
	acceptor Key // of the AP-REP; no value: none
	options  byte
	packet   uint64
	xid      uint32
	conn     *rdma.Connection
}

func newScene(t testing.TB, e EType) *scene {
	s := &scene{t: t, handle: []byte{2, 0, 0, 0}, session: newKey(e), sub: newKey(e), acceptor: newKey(e)}
	s.conn = &rdma.Connection{}
	s.conn.Ends[0].Addr = netip.MustParseAddr("192.0.2.2")
	s.conn.Ends[1].Addr = netip.MustParseAddr("192.0.2.1")
	return s
}

func (s *scene) request(serviceKey Key, kvno int64) []byte {
	ticket := app(tagEncTicketPart, func(b *cryptobyte.Builder) {
		field(b, 0, func(b *cryptobyte.Builder) { b.AddASN1BitString([]byte{0, 0, 0, 0}) })
		keyField(b, 1, s.session)
		text(b, 2, realmName)
		principal(b, 3, "user")
	})
	auth := app(tagAuthenticator, func(b *cryptobyte.Builder) {
		number(b, 0, 5)
		text(b, 1, realmName)
		principal(b, 2, "user")
		number(b, 4, 1)
		if s.sub.Value != nil {
			keyField(b, 6, s.sub)
		}
		number(b, 7, 1)
	})
	return inFrame(tokenAPReq, app(tagAPReq, func(b *cryptobyte.Builder) {
		number(b, 0, 5)
		number(b, 1, tagAPReq)
		field(b, 2, func(b *cryptobyte.Builder) { b.AddASN1BitString([]byte{s.options, 0, 0, 0}) })
		field(b, 3, func(b *cryptobyte.Builder) {
			b.AddBytes(app(tagTicket, func(b *cryptobyte.Builder) {
				number(b, 0, 5)
				text(b, 1, realmName)
				principal(b, 2, "nfs", "host")
				encrypted(b, 3, serviceKey.EType, kvno, encrypt(s.t, serviceKey, usageTicket, ticket))
			}))
		})
		encrypted(b, 4, s.session.EType, 0, encrypt(s.t, s.session, usageAuthenticator, auth))
	}))
}

func (s *scene) answer() []byte {
	part := app(tagEncAPRepPart, func(b *cryptobyte.Builder) {
		field(b, 0, func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.GeneralizedTime, func(b *cryptobyte.Builder) { b.AddBytes([]byte("20260101000000Z")) })
		})
		number(b, 1, 1)
		if s.acceptor.Value != nil {
			keyField(b, 2, s.acceptor)
		}
	})
	return inFrame(tokenAPRep, app(tagAPRep, func(b *cryptobyte.Builder) {
		number(b, 0, 5)
		number(b, 1, tagAPRep)
		encrypted(b, 2, s.session.EType, 0, encrypt(s.t, s.session, usageAPRep, part))
	}))
}

// base is the key of tokens, and their flags.
func (s *scene) base(from side) (Key, byte) {
	switch {
	case s.acceptor.Value != nil:
		return s.acceptor, flagSubkey | byte(from)
	case s.sub.Value != nil:
		return s.sub, byte(from)
	}
	return s.session, byte(from)
}

func (s *scene) mic(from side, data []byte) []byte {
	k, flags := s.base(from)
	h := []byte{4, 4, flags, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 9}
	return append(h, checksum(s.t, k, usageSign[from], append(slices.Clone(data), h...))...)
}

// wrap makes a sealed token, with ec bytes of filler, rotated by rrc.
func (s *scene) wrap(from side, data []byte, ec, rrc int) []byte {
	k, flags := s.base(from)
	h := []byte{5, 4, flags | flagSealed, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}
	binary.BigEndian.PutUint16(h[4:], uint16(ec))
	plain := append(append(slices.Clone(data), make([]byte, ec)...), h...)
	body := encrypt(s.t, k, usageSeal[from], plain)
	binary.BigEndian.PutUint16(h[6:], uint16(rrc))
	r := rrc % len(body)
	return append(append(h, body[len(body)-r:]...), body[:len(body)-r]...)
}

// signed makes a Wrap token that is not encrypted.
func (s *scene) signed(from side, data []byte, rrc int) []byte {
	k, flags := s.base(from)
	h := []byte{5, 4, flags, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}
	sum := checksum(s.t, k, usageSeal[from], append(slices.Clone(data), h...))
	binary.BigEndian.PutUint16(h[4:], uint16(len(sum)))
	binary.BigEndian.PutUint16(h[6:], uint16(rrc))
	body := append(slices.Clone(data), sum...)
	r := rrc % len(body)
	return append(append(h, body[len(body)-r:]...), body[:len(body)-r]...)
}

// exchange makes a transaction of a call and a reply.
func (s *scene) exchange(g oncrpc.GSSCred, verf func(header []byte) []byte, args, replyVerf, results []byte) *transaction.Transaction {
	s.xid++
	call := oncrpc.Call{XID: s.xid, RPCVersion: 2, Program: 100003, Version: 3, Procedure: 1}
	call.Cred = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: g.Append(nil)}
	b := call.Append(nil)
	b = b[:24+call.Cred.Size()]
	v := oncrpc.Auth{Flavor: oncrpc.RPCSecGSS}
	if body := verf(b); body != nil {
		v.Body = body
	} else {
		v.Flavor = oncrpc.AuthNone
	}
	b = append(v.Append(b), args...)
	tx := &transaction.Transaction{Connection: s.conn, XID: s.xid, Program: 100003, Version: 3, Procedure: 1, Named: true}
	tx.Call = s.message(b)
	if results != nil {
		reply := oncrpc.Reply{XID: s.xid, Verf: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: replyVerf}}
		tx.Reply = s.message(append(reply.Append(nil), results...))
	} else {
		tx.State = transaction.NoReply
	}
	return tx
}

func (s *scene) message(b []byte) transaction.Message {
	s.packet++
	ref := rdma.Ref{Number: s.packet, Time: int64(s.packet)}
	return transaction.Message{First: ref, Last: ref, Payload: b, PayloadLength: len(b), Bytes: uint64(len(b))}
}

func (s *scene) init(serviceKey Key, kvno int64) *transaction.Transaction {
	return s.round(oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSInit, Handle: []byte{}}, 0, s.request(serviceKey, kvno), s.answer())
}

// round is one of the rounds that create a context.
func (s *scene) round(g oncrpc.GSSCred, major uint32, token, answer []byte) *transaction.Transaction {
	window := xdr.AppendUint32(nil, 128)
	r := oncrpc.GSSInitResult{Handle: s.handle, Major: major, Window: 128, Token: answer}
	return s.exchange(g, func([]byte) []byte { return nil }, xdr.AppendOpaque(nil, token), s.mic(acceptor, window), r.Append(nil))
}

func (s *scene) cred(seq uint32, service oncrpc.Service) oncrpc.GSSCred {
	return oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSData, Sequence: seq, Service: service, Handle: s.handle}
}

func (s *scene) verifier(header []byte) []byte { return s.mic(initiator, header) }

// fh is the argument and result of the calls: a file handle of four bytes.
var fh = []byte{0, 0, 0, 4, 1, 2, 3, 4}

// private makes a call of krb5p.
func (s *scene) private(seq uint32) *transaction.Transaction {
	n := xdr.AppendUint32(nil, seq)
	return s.exchange(s.cred(seq, oncrpc.ServicePrivacy), s.verifier,
		xdr.AppendOpaque(nil, s.wrap(initiator, append(slices.Clone(n), fh...), 0, 0)),
		s.mic(acceptor, n), xdr.AppendOpaque(nil, s.wrap(acceptor, append(slices.Clone(n), 0, 0, 0, 2), 0, 0)))
}

func (s *scene) keytab(k Key, kvno uint32) *Keytab {
	return &Keytab{[]entry{{service + "@" + realmName, kvno, k}}}
}

// set passes a transaction to a View.
func set(c *Contexts, tx *transaction.Transaction) *rpc.View {
	v := &rpc.View{Unwrap: c}
	v.Set(tx)
	return v
}
