package krb5

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	gokrb5 "github.com/jcmturner/gokrb5/v8/types"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

// ticketOf makes a ticket with a key of a service.
func ticketOf(t testing.TB, key Key, session Key, from, to time.Time, flags byte) *Ticket {
	client := Principal{Realm: realmName, Type: 1, Parts: []string{"user"}}
	plain := app(tagEncTicketPart, func(b *cryptobyte.Builder) {
		field(b, 0, func(b *cryptobyte.Builder) { b.AddASN1BitString([]byte{flags, 0, 0, 0}) })
		keyField(b, 1, session)
		text(b, 2, realmName)
		principal(b, 3, "user")
		field(b, 4, func(b *cryptobyte.Builder) { b.AddASN1(asn1.SEQUENCE, func(*cryptobyte.Builder) {}) })
		addTime(b, 5, from)
		addTime(b, 7, to)
	})
	return &Ticket{Client: client, Service: service, Session: session, End: to, Message: app(tagTicket, func(b *cryptobyte.Builder) {
		number(b, 0, 5)
		text(b, 1, realmName)
		principal(b, 2, "nfs", "host")
		encrypted(b, 3, key.EType, 3, encrypt(t, key, usageTicket, plain))
	})}
}

func anew([sha256.Size]byte, time.Time) bool { return true }

// sessions are both sides of a context.
func sessions(t testing.TB, e EType) (client, server *Session) {
	t.Helper()
	key, session := newKey(e), newKey(e)
	now := time.Now()
	r, err := NewRequest(ticketOf(t, key, session, now.Add(-time.Hour), now.Add(time.Hour), 0), now)
	if err != nil {
		t.Fatal(err)
	}
	a, err := (&Keytab{[]entry{{service + "@" + realmName, 3, key}}}).Accept(r.Token(), now, anew)
	if err != nil {
		t.Fatal(err)
	}
	if a.Client.String() != "user@"+realmName || a.Realm != realmName || a.Service != service+"@"+realmName {
		t.Errorf("%+v", a)
	}
	if client, err = r.Finish(a.Token); err != nil {
		t.Fatal(err)
	}
	return client, a.Session
}

// TestSessions exchanges tokens of all lengths around the blocks in both directions.
func TestSessions(t *testing.T) {
	for _, e := range etypes {
		client, server := sessions(t, e)
		for n := range 70 {
			plain := append([]byte{0, 0, 0, 7}, bytes.Repeat([]byte{byte(n)}, n)...)
			for _, way := range [][2]*Session{{client, server}, {server, client}} {
				from, to := way[0], way[1]
				mic := from.MIC(nil, plain[:2], plain[2:])
				if len(mic) != from.MICSize() || len(mic) > MaxMIC || to.Verify(mic, plain) != nil || from.Verify(mic, plain) == nil {
					t.Fatalf("%v: MIC of %d bytes", e, n)
				}
				token, at := from.BeginWrap([]byte("before"))
				token = from.EndWrap(append(token, plain...), at)
				if !bytes.HasPrefix(token, []byte("before")) || len(token)-6 != from.WrapSize(len(plain)) || len(token)-6 > MaxWrap+len(plain) {
					t.Fatalf("%v: %d bytes for %d", e, len(token)-6, len(plain))
				}
				token = token[6:]
				var out rpc.Opened
				if err := to.Unwrap(token, 7, &out); err != nil || !bytes.Equal(out.Data, plain[4:]) {
					t.Fatalf("%v, %d bytes: %v %x", e, n, err, out.Data)
				}
				if err := to.Unwrap(token, 8, &out); !errors.Is(err, ErrSequence) {
					t.Fatal(err)
				}
				if err := from.Unwrap(token, 7, &out); !errors.Is(err, ErrToken) {
					t.Fatal("one's own token was taken")
				}
				// The library decrypts it.
				k, _ := from.keys()
				b, err := crypto.DecryptMessage(token[tokenHeader:], gokrb5.EncryptionKey{KeyType: int32(e), KeyValue: k.key.Value}, usageSeal[from.own])
				if e == AES256SHA384 {
					continue // the library's keys are too short for it
				}
				if err != nil || !bytes.Equal(b[:len(plain)], plain) {
					t.Fatalf("%v, %d bytes: the library: %v", e, n, err)
				}
			}
		}
	}
}

// TestUnsealed refuses a Wrap token that is only signed where privacy is required.
func TestUnsealed(t *testing.T) {
	s := newScene(t, AES256SHA1)
	session := newSession(acceptor, s.sub, s.session, s.acceptor, 1)
	data := []byte{0, 0, 0, 7, 1, 2, 3, 4}
	var out rpc.Opened
	if err := session.Unwrap(s.wrap(initiator, data, 0, 0), 7, &out); err != nil {
		t.Fatal(err)
	}
	if err := session.Unwrap(s.signed(initiator, data, 0), 7, &out); !errors.Is(err, ErrToken) {
		t.Errorf("%v: %q", err, out.Data)
	}
}

// TestRequestByLibrary lets the library verify a request.
func TestRequestByLibrary(t *testing.T) {
	for _, e := range []EType{AES128SHA1, AES256SHA1, AES128SHA256} {
		tab := keytab.New()
		if err := tab.AddEntry(service, realmName, "password", time.Now(), 3, int32(e)); err != nil {
			t.Fatal(err)
		}
		now := time.Now().UTC().Truncate(time.Second)
		tkt, key, err := messages.NewTicket(gokrb5.NewPrincipalName(1, "user"), realmName, gokrb5.NewPrincipalName(2, service), realmName, gokrb5.NewKrbFlags(), tab, int32(e), 3, now, now, now.Add(time.Hour), now.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		b, err := tkt.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		mine := &Ticket{Client: Principal{realmName, 1, []string{"user"}}, Message: b, Session: Key{EType(key.KeyType), key.KeyValue}, End: now.Add(time.Hour)}
		r, err := NewRequest(mine, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		id, body, ok := initial(r.Token())
		var ap messages.APReq
		if !ok || id != tokenAPReq {
			t.Fatal("the frame")
		}
		if err := ap.Unmarshal(body); err != nil {
			t.Fatal(err)
		}
		if ok, err := ap.Verify(tab, time.Minute, gokrb5.HostAddress{}, nil); !ok {
			t.Fatalf("%v: %v", e, err)
		}
		if c := ap.Authenticator.Cksum; c.CksumType != checksumGSS || len(c.Checksum) != 24 || ap.Authenticator.SubKey.KeyType != int32(e) {
			t.Errorf("%+v", ap.Authenticator)
		}
	}
}

// TestImpostor answers requests with tokens that prove nothing.
func TestImpostor(t *testing.T) {
	now := time.Now()
	key, session := newKey(AES256SHA1), newKey(AES256SHA1)
	tk := ticketOf(t, key, session, now, now.Add(time.Hour), 0)
	tab := &Keytab{[]entry{{service + "@" + realmName, 3, key}}}
	r, err := NewRequest(tk, now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewRequest(tk, now.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	toOther, err := tab.Accept(other.Token(), now, anew)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := answer(newKey(AES256SHA1), newKey(AES256SHA1), r.made, 1)
	if err != nil {
		t.Fatal(err)
	}
	old, err := answer(session, Key{23, make([]byte, 16)}, r.made, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string][]byte{"nothing": nil, "the request": r.Token(), "the answer to another": toOther.Token, "another key": forged, "a weak key": old} {
		if _, err := r.Finish(token); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	good, err := tab.Accept(r.Token(), now, anew)
	if err != nil {
		t.Fatal(err)
	}
	hints := 0 // the type and version of the key, which nothing depends on
	for i := range good.Token {
		b := bytes.Clone(good.Token)
		b[i] ^= 1
		if s, err := r.Finish(b); err == nil {
			hints++
			if s.Verify(good.MIC(nil, b), b) != nil {
				t.Errorf("byte %d of the answer changed, and another key is taken", i)
			}
		}
	}
	if hints > 4 {
		t.Errorf("%d bytes of the answer can be changed", hints)
	}
	if _, err := r.Finish(good.Token); err != nil {
		t.Error(err)
	}
}

// TestAcceptBits flips bits of a request: no such request may be accepted, except for bits that
// are unprotected and have no meaning.
func TestAcceptBits(t *testing.T) {
	now := time.Now()
	key := newKey(AES128SHA1)
	tab := &Keytab{[]entry{{service + "@" + realmName, 3, key}}}
	r, err := NewRequest(ticketOf(t, key, newKey(AES128SHA1), now, now.Add(time.Hour), 0), now)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for i := range len(r.token) * 8 {
		b := bytes.Clone(r.token)
		b[i/8] ^= 1 << (i % 8)
		a, err := tab.Accept(b, now, anew)
		if err != nil {
			continue
		}
		taken++
		// The name of the service and the version of its key are hints. Who the client
		// is, and the keys, are not.
		if a.Client.String() != "user@"+realmName {
			t.Errorf("bit %d: the client is %s", i, a.Client.String())
		}
		if _, err := r.Finish(a.Token); err != nil {
			t.Errorf("bit %d: %v", i, err)
		}
	}
	if taken > len(r.token) {
		t.Errorf("%d of %d bits mean nothing", taken, 8*len(r.token))
	}
}

func TestTicketTimes(t *testing.T) {
	now := time.Now()
	key := newKey(AES256SHA384)
	tab := &Keytab{[]entry{{service + "@" + realmName, 3, key}}}
	for _, c := range []struct {
		from, to time.Duration
		flags    byte
		want     error
	}{
		{-time.Hour, time.Hour, 0, nil}, {-time.Hour, -4 * time.Minute, 0, nil}, {-time.Hour, -6 * time.Minute, 0, ErrExpired},
		{4 * time.Minute, time.Hour, 0, nil}, {6 * time.Minute, time.Hour, 0, ErrExpired}, {-time.Hour, time.Hour, 1, ErrExpired},
	} {
		r, err := NewRequest(ticketOf(t, key, newKey(AES256SHA384), now.Add(c.from), now.Add(c.to), c.flags), now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Accept(r.Token(), now, anew); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := tab.Accept(r.Token(), now, func([sha256.Size]byte, time.Time) bool { return false }); err == nil {
			t.Error("a replay was taken")
		}
	}
}

// TestSessionAllocs: tokens allocate nothing once a context is in use.
func TestSessionAllocs(t *testing.T) {
	client, server := sessions(t, AES256SHA1)
	var mic, token []byte
	var out rpc.Opened
	plain := make([]byte, 9000)
	plain[3] = 7
	n := testing.AllocsPerRun(100, func() {
		mic = client.MIC(mic[:0], plain)
		if server.Verify(mic, plain) != nil {
			t.Fatal("MIC")
		}
		var at int
		token, at = client.BeginWrap(token[:0])
		token = client.EndWrap(append(token, plain...), at)
		if server.Unwrap(token, 7, &out) != nil {
			t.Fatal("Wrap")
		}
	})
	if n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}

// TestKDCReplies cuts and damages the replies of a KDC.
func TestKDCReplies(t *testing.T) {
	tab := &Keytab{[]entry{{"user@" + realmName, 1, newKey(AES256SHA1)}}}
	client := Principal{realmName, 1, []string{"user"}}
	now := time.Now().UTC().Truncate(time.Second)
	r, err := NewASRequest(client, tab, AES256SHA1, now)
	if err != nil {
		t.Fatal(err)
	}
	reply := func(nonce int64, who, service string) []byte {
		part := app(tagEncASRepPart, func(b *cryptobyte.Builder) {
			keyField(b, 0, newKey(AES256SHA1))
			field(b, 1, func(b *cryptobyte.Builder) { b.AddASN1(asn1.SEQUENCE, func(*cryptobyte.Builder) {}) })
			number(b, 2, nonce)
			addTime(b, 5, now)
			addTime(b, 7, now.Add(time.Hour))
			text(b, 9, realmName)
			principal(b, 10, "krbtgt", service)
		})
		return app(tagASRep, func(b *cryptobyte.Builder) {
			number(b, 0, 5)
			number(b, 1, tagASRep)
			text(b, 3, realmName)
			principal(b, 4, who)
			field(b, 5, func(b *cryptobyte.Builder) { b.AddBytes([]byte{0x61, 0}) })
			encrypted(b, 6, AES256SHA1, 1, encrypt(t, tab.entries[0].key, usageASRep, part))
		})
	}
	good := reply(r.nonce, "user", realmName)
	if tk, err := r.Reply(good); err != nil || !tk.End.Equal(now.Add(time.Hour)) {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"another nonce": reply(r.nonce+1, "user", realmName), "another client": reply(r.nonce, "root", realmName), "another service": reply(r.nonce, "user", "OTHER")} {
		if _, err := r.Reply(b); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	for i := range good {
		if _, err := r.Reply(good[:i]); err == nil {
			t.Errorf("cut at %d, and taken", i)
		}
		b := bytes.Clone(good)
		b[i] ^= 0x41
		_, _ = r.Reply(b)
	}
}

func FuzzAccept(f *testing.F) {
	now := time.Now()
	key := newKey(AES128SHA1)
	tab := &Keytab{[]entry{{service + "@" + realmName, 3, key}}}
	tk := ticketOf(f, key, newKey(AES128SHA1), now.Add(-time.Hour), now.Add(100000*time.Hour), 0)
	r, err := NewRequest(tk, now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.Token())
	f.Add([]byte{0x60, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := tab.Accept(b, now, anew)
		if err == nil && a.Client.String() != "user@"+realmName {
			t.Fatalf("accepted as %s", a.Client.String())
		}
		_, _ = r.Finish(b)
	})
}

func BenchmarkWrap(b *testing.B) {
	for _, n := range []int{256, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			client, server := sessions(b, AES256SHA1)
			var token []byte
			var out rpc.Opened
			plain := make([]byte, n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				var at int
				token, at = client.BeginWrap(token[:0])
				token = client.EndWrap(append(token, plain...), at)
				if server.Unwrap(token, 0, &out) != nil {
					b.Fatal("Wrap")
				}
			}
		})
	}
}
