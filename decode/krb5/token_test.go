package krb5

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"golang.org/x/crypto/cryptobyte"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

var etypes = []EType{AES128SHA1, AES256SHA1, AES128SHA256, AES256SHA384}

// contextOf is the context of a scene with its keys.
func contextOf(s *scene) *context {
	c := New(nil, Options{})
	x := &context{table: &c.table, state: keyed, session: s.session}
	x.initiator.key, x.acceptor.key = s.session, s.acceptor
	if s.sub.Value != nil {
		x.initiator.key = s.sub
	}
	return x
}

// TestDecrypt compares with the library, for each length around the blocks.
func TestDecrypt(t *testing.T) {
	for _, e := range etypes {
		k := newKey(e)
		for n := range 100 {
			plain := bytes.Repeat([]byte{byte(n)}, n)
			c := encrypt(t, k, 7, plain)
			got, ok := k.decrypt(c, 7)
			if !ok || !bytes.Equal(got, plain) {
				t.Fatalf("%v, %d bytes: %x %v", e, n, got, ok)
			}
			for i := range c {
				c[i] ^= 0x10
				if _, ok := k.decrypt(c, 7); ok {
					t.Fatalf("%v, %d bytes: byte %d flipped and not found", e, n, i)
				}
				c[i] ^= 0x10
			}
			for i := range c {
				if _, ok := k.decrypt(c[:i], 7); ok {
					t.Fatalf("%v, %d bytes: cut at %d and not found", e, n, i)
				}
			}
		}
	}
	for _, e := range []EType{16, 23} { // of tickets
		k := newKey(e)
		c := encrypt(t, k, usageTicket, make([]byte, 40))
		if got, ok := k.decrypt(c, usageTicket); !ok || !bytes.Equal(got, make([]byte, 40)) {
			t.Errorf("%v: %x %v", e, got, ok)
		}
		for i := range c {
			if _, ok := k.decrypt(c[:i], usageTicket); ok {
				t.Errorf("%v: cut at %d and not found", e, i)
			}
		}
	}
}

func TestWrapTokens(t *testing.T) {
	for _, e := range etypes {
		for _, keys := range []string{"session", "sub", "acceptor"} {
			s := newScene(t, e)
			switch keys {
			case "session":
				s.sub, s.acceptor = Key{}, Key{}
			case "sub":
				s.acceptor = Key{}
			}
			x := contextOf(s)
			for _, from := range []side{initiator, acceptor} {
				for _, n := range []int{4, 8, 12, 16, 36, 1000} {
					for _, ec := range []int{0, 1, 16} {
						for _, rrc := range []int{0, 1, 12, 16, 28, 29, 40, 65535} {
							data := make([]byte, n)
							copy(data, []byte{0, 0, 0, 5, 9, 8, 7, 6})
							for _, token := range [][]byte{s.wrap(from, data, ec, rrc), s.signed(from, data, rrc)} {
								var out rpc.Opened
								if v := x.unwrap(token, len(token), from, 5, &out); v != good || out.How != rpc.Decrypted || !bytes.Equal(out.Data, data[4:]) || out.Length != n-4 {
									t.Fatalf("%v, key %s, side %d, %d bytes, EC %d, RRC %d: %v, %x", e, keys, from, n, ec, rrc, v, out.Data)
								}
								if v := x.unwrap(token, len(token), 1-from, 5, &rpc.Opened{}); v != tokenReflected {
									t.Fatalf("reflected: %v", v)
								}
								if v := x.unwrap(token, len(token), from, 6, &rpc.Opened{}); v != wrongSequence {
									t.Fatalf("another sequence number: %v", v)
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestPrefix decrypts the beginning of a cut token, if its sequence number is right.
func TestPrefix(t *testing.T) {
	for _, e := range etypes {
		s := newScene(t, e)
		x := contextOf(s)
		data := make([]byte, 100)
		data[3] = 5
		for _, rrc := range []int{0, 12} {
			token := s.wrap(acceptor, data, 0, rrc)
			for n := range token {
				var out, other rpc.Opened
				v := x.unwrap(token[:n], len(token), acceptor, 5, &out)
				if v != cut || out.How == rpc.Decrypted || rrc > 0 && out.How != rpc.NotOpened || !bytes.HasPrefix(data[4:], out.Data) {
					t.Errorf("%v, RRC %d, cut at %d: %v, %v", e, rrc, n, v, out.How)
				}
				if v := x.unwrap(token[:n], len(token), acceptor, 6, &other); other.How != rpc.NotOpened || out.How == rpc.Prefix && v != wrongSequence {
					t.Errorf("%v, cut at %d: another sequence number: %v, %v", e, n, v, other.How)
				}
			}
		}
	}
}

// TestTokenBits flips each bit of tokens.
func TestTokenBits(t *testing.T) {
	for _, e := range etypes {
		s := newScene(t, e)
		x := contextOf(s)
		data := []byte{0, 0, 0, 5, 1, 2, 3, 4}
		for _, token := range [][]byte{s.wrap(initiator, data, 0, 0), s.wrap(initiator, data, 2, 7), s.signed(initiator, data, 3), s.mic(initiator, data)} {
			for i := range len(token) * 8 {
				token[i/8] ^= 1 << (i % 8)
				var out rpc.Opened
				v := x.unwrap(token, len(token), initiator, 5, &out)
				if token[0] == 4 {
					v = x.mic(token, data, initiator)
				}
				// RRC only says how the rest is arranged, so a rotation by the whole length
				// changes nothing.
				if v == good && !(token[0] == 5 && (i/8 == 6 || i/8 == 7)) {
					t.Errorf("%v: bit %d of %x flipped and not found", e, i, token)
				}
				token[i/8] ^= 1 << (i % 8)
			}
		}
	}
}

func TestContextLife(t *testing.T) {
	for _, e := range etypes {
		t.Run(e.String(), func(t *testing.T) {
			s := newScene(t, e)
			key := newKey(AES256SHA1)
			c := New(s.keytab(key, 3), Options{})
			want := func(v *rpc.View, how rpc.Opening, notes ...string) {
				t.Helper()
				if v.CallOpened.How != how || v.ReplyOpened.How != how {
					t.Errorf("packet %d: call %v, reply %v, want %v", s.packet, v.CallOpened.How, v.ReplyOpened.How, how)
				}
				if got := fmt.Sprint(v.Tx.Notes); len(v.Tx.Notes) != len(notes) || len(notes) > 0 && !strings.Contains(got, notes[0]) {
					t.Errorf("packet %d: notes %q, want %q", s.packet, v.Tx.Notes, notes)
				}
			}
			want(set(c, s.private(1)), rpc.NotOpened, "creation of the context was not captured")
			want(set(c, s.private(2)), rpc.NotOpened)
			want(set(c, s.init(key, 3)), rpc.NotOpened)
			v := set(c, s.private(1))
			want(v, rpc.Decrypted)
			if v.Principal != "user@REALM" || v.Status() != "NFS3ERR_NOENT" {
				t.Errorf("principal %q, status %q", v.Principal, v.Status())
			}
			want(set(c, v.Tx), rpc.Decrypted) // looked at again
			want(set(c, s.private(1)), rpc.Decrypted, "sequence number 1 of the context was used before")
			want(set(c, s.private(300)), rpc.Decrypted)
			late := s.private(172)
			late.Reply = s.message(nil)
			late.Reply.Last.Number, late.Reply.First.Number, late.State = 0, 0, 1
			if v := set(c, late); len(v.Tx.Notes) != 1 || !strings.Contains(v.Tx.Notes[0].String(), "below the window") {
				t.Errorf("notes %q", v.Tx.Notes)
			}
			want(set(c, s.private(173)), rpc.Decrypted)

			// The server gives the handle to another one; both are distinguished.
			other := *s
			other.session, other.sub, other.acceptor = newKey(e), newKey(e), newKey(e)
			other.packet, other.xid = s.packet+1000, s.xid+1000
			want(set(c, other.init(key, 3)), rpc.NotOpened)
			want(set(c, other.private(1)), rpc.Decrypted)
			want(set(c, s.private(301)), rpc.Decrypted)
			want(set(c, other.private(2)), rpc.Decrypted)

			// The end of the context.
			g := s.cred(302, oncrpc.ServiceNone)
			g.Proc = oncrpc.GSSDestroy
			n := xdr.AppendUint32(nil, 302)
			want(set(c, s.exchange(g, s.verifier, nil, s.mic(acceptor, n), []byte{})), rpc.NotOpened)
			want(set(c, s.private(303)), rpc.Decrypted, "the context was destroyed in packet")

			if sum := c.Summary(); sum.Unknown != 1 || sum.Opened != 2 || sum.Refused != 0 {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// TestTenants: equal handles of equal addresses in two networks are two contexts, also if the one of the second is not known.
func TestTenants(t *testing.T) {
	s := newScene(t, AES128SHA256)
	key := newKey(AES256SHA1)
	c := New(s.keytab(key, 3), Options{})
	set(c, s.init(key, 3))
	if v := set(c, s.private(1)); v.Opening() != rpc.Decrypted {
		t.Errorf("%v", v.Tx.Notes)
	}
	other, conn := *s, *s.conn
	conn.Tenant, other.conn = 7, &conn
	other.session, other.sub, other.acceptor = newKey(AES128SHA256), newKey(AES128SHA256), newKey(AES128SHA256)
	other.packet += 1000
	if v := set(c, other.private(1)); v.Opening() != rpc.NotOpened || fmt.Sprint(v.Tx.Notes) != "[krb5: the creation of the context was not captured: its keys are not known]" {
		t.Errorf("%v, %v", v.Opening(), v.Tx.Notes)
	}
	if sum := c.Summary(); sum.Unknown != 1 || sum.Refused != 0 {
		t.Errorf("%+v", sum)
	}
	if v := set(c, s.private(2)); v.Opening() != rpc.Decrypted || len(v.Tx.Notes) > 0 {
		t.Errorf("%v", v.Tx.Notes)
	}
}

// TestContinue creates a context in two rounds, the second of which changes the
// handle.
func TestContinue(t *testing.T) {
	s := newScene(t, AES256SHA384)
	key := newKey(AES128SHA1)
	c := New(s.keytab(key, 3), Options{})
	set(c, s.round(oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSInit, Handle: []byte{}}, 1, s.request(key, 0), s.answer()))
	first := s.handle
	s.handle = []byte{9, 9}
	v := set(c, s.round(oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSContinueInit, Handle: first}, 0, inFrame(tokenAPRep, nil), nil))
	if len(v.Tx.Notes) > 0 {
		t.Errorf("%q", v.Tx.Notes)
	}
	if v := set(c, s.private(1)); v.Opening() != rpc.Decrypted || len(v.Tx.Notes) > 0 {
		t.Errorf("%v %q", v.Opening(), v.Tx.Notes)
	}
	// Without the first round.
	c = New(s.keytab(key, 3), Options{})
	v = set(c, s.round(oncrpc.GSSCred{Version: 1, Proc: oncrpc.GSSContinueInit, Handle: first}, 0, inFrame(tokenAPRep, nil), nil))
	if len(v.Tx.Notes) != 1 || !strings.Contains(v.Tx.Notes[0].String(), "first round") {
		t.Errorf("%q", v.Tx.Notes)
	}
}

func TestProblems(t *testing.T) {
	key := newKey(AES256SHA1)
	for _, c := range []struct {
		name   string
		keytab Key
		kvno   uint32
		change func(*scene)
		want   string
	}{
		{"user to user", key, 3, func(s *scene) { s.options = 0x40 }, "user-to-user"},
		{"rc4 context", key, 3, func(s *scene) { s.sub = newKey(23) }, "contexts of rc4-hmac are not supported"},
		{"camellia context", key, 3, func(s *scene) { s.sub = Key{26, make([]byte, 32)} }, "contexts of camellia256-cts-cmac are not supported"},
		{"unknown enctype", key, 3, func(s *scene) { s.sub = Key{77, make([]byte, 32)} }, "contexts of enctype 77 are not supported"},
		{"short key", key, 3, func(s *scene) { s.sub = Key{18, make([]byte, 31)} }, "contexts of aes256-cts-hmac-sha1-96 are not supported"},
		{"stale", newKey(AES256SHA1), 3, func(*scene) {}, "the keytab's key of nfs/host@REALM (kvno 3, aes256-cts-hmac-sha1-96) is not the one"},
		{"version", newKey(AES256SHA1), 2, func(*scene) {}, "other versions of the key, none of nfs/host@REALM (kvno 3"},
		{"type", newKey(AES128SHA1), 3, func(*scene) {}, "no key of this type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, AES256SHA1)
			c.change(s)
			contexts := New(s.keytab(c.keytab, c.kvno), Options{})
			v := set(contexts, s.init(key, 3))
			if len(v.Tx.Notes) != 1 || !strings.Contains(v.Tx.Notes[0].String(), c.want) {
				t.Errorf("%q, want %q", v.Tx.Notes, c.want)
			}
			v = set(contexts, newPrivate(s))
			if len(v.Tx.Notes) != 1 || !strings.Contains(v.Tx.Notes[0].String(), c.want) {
				t.Errorf("first use: %q, want %q", v.Tx.Notes, c.want)
			}
		})
	}
	camellia := Key{26, make([]byte, 32)}
	if got, want := newScene(t, AES256SHA1).keytab(camellia, 3).lacks("nfs/host@REALM", &encryptedData{kvno: 3, etype: 26}), "tickets of camellia256-cts-cmac are not supported"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// A ticket may be of a type that contexts may not have.
	for _, e := range []EType{16, 23} {
		s := newScene(t, AES256SHA1)
		key := newKey(e)
		contexts := New(s.keytab(key, 3), Options{})
		set(contexts, s.init(key, 3))
		if v := set(contexts, s.private(1)); v.Opening() != rpc.Decrypted {
			t.Errorf("ticket of %v: %q", e, v.Tx.Notes)
		}
	}
}

// newPrivate makes a call with the given keys.
func newPrivate(s *scene) *transaction.Transaction {
	o := *s
	o.sub, o.acceptor = newKey(AES256SHA1), newKey(AES256SHA1)
	return o.private(1)
}

// TestForged: a sender without the key cannot change the state of a context, and its messages are
// marked.
func TestForged(t *testing.T) {
	s := newScene(t, AES256SHA1)
	key := newKey(AES256SHA1)
	c := New(s.keytab(key, 3), Options{})
	set(c, s.init(key, 3))
	forger := *s
	forger.acceptor = newKey(AES256SHA1)
	forger.packet, forger.xid = 1000, 1000
	v := set(c, forger.private(0x7fffffff))
	if v.Opening() != rpc.Refused || v.Args() != nil || len(v.Tx.Notes) != 4 {
		t.Errorf("%v, %q", v.Opening(), v.Tx.Notes)
	}
	g := s.cred(5, oncrpc.ServiceNone)
	g.Proc = oncrpc.GSSDestroy
	set(c, s.exchange(g, forger.verifier, nil, nil, []byte{}))
	if v := set(c, s.private(1)); v.Opening() != rpc.Decrypted || len(v.Tx.Notes) > 0 {
		t.Errorf("%v, %q", v.Opening(), v.Tx.Notes)
	}
}

// TestPeek decrypts calls of known contexts, and adds no notes about others.
func TestPeek(t *testing.T) {
	s := newScene(t, AES128SHA1)
	key := newKey(AES256SHA1)
	c := New(s.keytab(key, 3), Options{})
	look := func(tx *transaction.Transaction) *rpc.View {
		v := &rpc.View{Unwrap: c.Peek()}
		v.Set(tx)
		if len(tx.Notes) > 0 {
			t.Errorf("%q", tx.Notes)
		}
		return v
	}
	init, call := s.init(key, 3), s.private(1)
	if v := look(call); v.Opening() != rpc.NotOpened {
		t.Error("opened without a context")
	}
	look(init)
	if c.table.count != 0 {
		t.Errorf("%d contexts", c.table.count)
	}
	set(c, init)
	if v := look(call); v.Opening() != rpc.Decrypted || v.Principal != "user@REALM" {
		t.Error("not opened")
	}
	call.Call.Payload[len(call.Call.Payload)-1] ^= 1
	if v := look(call); v.CallOpened.How != rpc.Refused {
		t.Error("not refused")
	}
	if sum := c.Summary(); sum != (Summary{}) {
		t.Errorf("%+v", sum)
	}
}

func TestEviction(t *testing.T) {
	s := newScene(t, AES128SHA256)
	key := newKey(AES256SHA1)
	c := New(s.keytab(key, 3), Options{Contexts: 8})
	set(c, s.init(key, 3))
	for i := range 100 {
		o := *s
		o.handle = []byte{7, byte(i)}
		o.packet += uint64(10 + 4*i)
		set(c, o.private(1))
		o.packet += 1000
		if v := set(c, s.private(uint32(i+1))); v.Opening() != rpc.Decrypted {
			t.Fatalf("context in use was forgotten after %d others", i)
		}
		s.packet = o.packet
	}
	if sum := c.Summary(); sum.Evicted != 93 || c.table.count != 8 || len(c.table.places) != 8 {
		t.Errorf("%+v, %d contexts, %d places", sum, c.table.count, len(c.table.places))
	}
	// One handle again and again.
	for range 50 {
		s.session, s.sub, s.acceptor = newKey(AES128SHA256), newKey(AES128SHA256), newKey(AES128SHA256)
		set(c, s.init(key, 3))
		n := 0
		for x := c.table.first; x != nil; x = x.next {
			n++
		}
		chain := 0
		for x := c.table.places[place{s.conn.Ends[1].Addr, 0, string(s.handle)}]; x != nil; x = x.older {
			chain++
		}
		if n != c.table.count || n > 8 || chain > maxOlder {
			t.Fatalf("%d contexts in the list, %d counted, %d with one handle", n, c.table.count, chain)
		}
	}
	if v := set(c, s.private(1)); v.Opening() != rpc.Decrypted {
		t.Errorf("%v", v.Tx.Notes)
	}
}

func TestKeytabFormats(t *testing.T) {
	entry := "\x00\x00\x00\x2d\x00\x02\x00\x05REALM\x00\x03nfs\x00\x04host\x00\x00\x00\x01\x00\x00\x00\x01\x07\x00\x11\x00\x04SECR"
	v2 := "\x05\x02" + entry
	for _, c := range []struct {
		name, data, err string
		kvno            uint32
	}{
		{"empty", "", "not a keytab", 0},
		{"text", "hello, world", "not a keytab", 0},
		{"ccache", "\x05\x04\x00\x00\x00\x00", "not a keytab", 0},
		{"no entries", "\x05\x02", "holds no key", 0},
		{"cut", v2[:20], "damaged", 0},
	} {
		k, err := ParseKeytab([]byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v", c.name, k, err)
		}
	}
	for i := range v2 {
		if _, err := ParseKeytab([]byte(v2[:i])); err != nil && strings.Contains(err.Error(), "SECR") {
			t.Errorf("cut at %d: the error shows the key: %v", i, err)
		}
	}
	if _, err := ParseKeytab(make([]byte, maxKeytab+1)); err == nil {
		t.Error("too large")
	}
	for env, want := range map[string]string{"FILE:/etc/a:b": "/etc/a:b", "/etc/k": "/etc/k", "WRFILE:x": "x", "./a:b": "./a:b", "MEMORY:x": "error", "KCM:": "error"} {
		got, err := FromEnvironment(env)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("KRB5_KTNAME=%s: %s (%v), want %s", env, got, err, want)
		}
	}
}

func FuzzUnwrap(f *testing.F) {
	s := newScene(f, AES256SHA1)
	data := []byte{0, 0, 0, 5, 1, 2, 3, 4}
	f.Add(s.wrap(initiator, data, 0, 0), 100, false)
	f.Add(s.wrap(initiator, data, 3, 28), 80, true)
	f.Add(s.signed(initiator, data, 3), 36, false)
	f.Add(s.mic(initiator, data), 28, false)
	f.Fuzz(func(t *testing.T, token []byte, full int, sha2 bool) {
		e := AES256SHA1
		if sha2 {
			e = AES256SHA384
		}
		x := contextOf(fixed(t, e))
		full = max(full, len(token))
		var out rpc.Opened
		v := x.unwrap(token, full, initiator, 5, &out)
		if out.How == rpc.Decrypted && v != good {
			return // with another sequence number
		}
		if len(out.Data) > out.Length {
			t.Errorf("%d bytes of %d", len(out.Data), out.Length)
		}
		x.mic(token, data, acceptor)
	})
}

// fixed is a scene whose keys are the same each time.
func fixed(t testing.TB, e EType) *scene {
	s := newScene(t, e)
	for i := range s.acceptor.Value {
		s.acceptor.Value[i], s.sub.Value[i], s.session.Value[i] = 1, 2, 3
	}
	return s
}

func FuzzKeytab(f *testing.F) {
	f.Add([]byte("\x05\x02\x00\x00\x00\x2d\x00\x02\x00\x05REALM\x00\x03nfs\x00\x04host\x00\x00\x00\x01\x00\x00\x00\x01\x07\x00\x11\x00\x04SECR"))
	f.Add([]byte("\x05\x01\x00\x00\x00\x10"))
	f.Add([]byte("\x05\x02\x80\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		k, err := ParseKeytab(b)
		if err == nil {
			k.lacks("a", &encryptedData{})
			k.open("a", &encryptedData{etype: 18, cipher: b})
		}
	})
}

// FuzzToken covers everything that is read of the tokens of a context's creation, with the right
// keys for each layer, so that it gets past the encryption.
func FuzzToken(f *testing.F) {
	s := newScene(f, AES256SHA1)
	f.Add(s.request(newKey(AES256SHA1), 3), []byte{})
	f.Add(s.answer(), app(tagEncTicketPart, func(b *cryptobyte.Builder) { keyField(b, 1, s.session) }))
	f.Fuzz(func(t *testing.T, token, plain []byte) {
		var req apReq
		if _, body, ok := initial(token); ok {
			req.decode(body)
			if e, ok := apRep(body); ok {
				s.session.decrypt(e.cipher, usageAPRep)
			}
		}
		for _, e := range []EType{16, 17, 20, 23, 26} {
			k := Key{e, make([]byte, 16)}
			k.decrypt(token, usageTicket)
			k = newKey(e)
			k.decrypt(token, usageTicket)
		}
		encTicketPart(plain)
		subkey(plain, tagAuthenticator, 6)
		subkey(plain, tagEncAPRepPart, 2)
		if len(printable(req.service)) > 4*300 {
			t.Error("a name without end")
		}
	})
}

func BenchmarkUnwrap(b *testing.B) {
	for _, n := range []int{256, 64 << 10, 1 << 20} {
		s := newScene(b, AES256SHA1)
		data := slices.Concat([]byte{0, 0, 0, 5}, make([]byte, n))
		token := s.wrap(acceptor, data, 0, 0)
		x := contextOf(s)
		b.Run(fmt.Sprintf("own/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			b.ReportAllocs()
			var out rpc.Opened
			for b.Loop() {
				if x.unwrap(token, len(token), acceptor, 5, &out) != good {
					b.Fatal("not opened")
				}
			}
		})
		b.Run(fmt.Sprintf("library/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			b.ReportAllocs()
			e, err := crypto.GetEtype(int32(s.acceptor.EType))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := e.DecryptMessage(s.acceptor.Value, token[tokenHeader:], usageSeal[acceptor]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
