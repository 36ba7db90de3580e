package login

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/internal/testtools/krbtest"
)

func write(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// accepted reports whether a service accepts a ticket, and whose ticket it is.
func accepted(t *testing.T, r *krbtest.Realm, tk *krb5.Ticket) string {
	t.Helper()
	req, err := krb5.NewRequest(tk, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.Keytab().Accept(req.Token(), time.Now(), func([32]byte, time.Time) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := req.Finish(a.Token); err != nil {
		t.Fatal(err)
	}
	return a.Client.String()
}

func TestKeytab(t *testing.T) {
	for _, e := range []krb5.EType{krb5.AES128SHA1, krb5.AES256SHA1, krb5.AES128SHA256} {
		realm := krbtest.New(t, e)
		kdc := krbtest.NewKDC(realm, time.Hour)
		o := Options{Keytab: write(t, kdc.Keytab()), Service: krbtest.Service, Config: write(t, kdc.Config())}
		l, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if l.Client() != "alice@REALM.TEST" {
			t.Errorf("client %s", l.Client())
		}
		tk, err := l.Ticket(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if who := accepted(t, realm, tk); who != "alice@REALM.TEST" || time.Until(tk.End) > time.Hour || time.Until(tk.End) < 50*time.Minute {
			t.Errorf("%s until %s", who, tk.End)
		}
		again, err := l.Ticket(t.Context())
		if err != nil || again != tk || kdc.Asked.Load() != 2 {
			t.Errorf("asked %d times, %v", kdc.Asked.Load(), err)
		}

		// The ticket-granting ticket in a cache.
		o.Keytab, o.Cache = "", "FILE:"+write(t, krbtest.Cache(granting(t, o, kdc)))
		if l, err = New(o); err != nil {
			t.Fatal(err)
		}
		if tk, err = l.Ticket(t.Context()); err != nil {
			t.Fatal(err)
		}
		if who := accepted(t, realm, tk); who != "alice@REALM.TEST" {
			t.Error(who)
		}
	}
}

// granting gets a ticket-granting ticket.
func granting(t *testing.T, o Options, kdc *krbtest.KDC) *krb5.Ticket {
	t.Helper()
	tab, err := krb5.ParseKeytab(kdc.Keytab())
	if err != nil {
		t.Fatal(err)
	}
	l := &Login{o: o, client: krb5.Principal{Realm: krbtest.Name, Type: 1, Parts: []string{"alice"}}}
	for _, e := range krb5.ETypes {
		r, err := krb5.NewASRequest(l.client, tab, e, time.Now())
		if err != nil {
			continue
		}
		tk, err := l.ask(t.Context(), r, krbtest.Name)
		if err != nil {
			t.Fatal(err)
		}
		return tk
	}
	t.Fatal("no key")
	return nil
}

// TestShortLife asks again when a ticket is about to end.
func TestShortLife(t *testing.T) {
	realm := krbtest.New(t, krb5.AES256SHA1)
	kdc := krbtest.NewKDC(realm, 30*time.Second)
	l, err := New(Options{Keytab: write(t, kdc.Keytab()), Principal: "alice", Service: krbtest.Service + "@" + krbtest.Name, Config: write(t, kdc.Config())})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Ticket(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if kdc.Asked.Load() != 4 {
		t.Errorf("asked %d times", kdc.Asked.Load())
	}
}

func TestRefusals(t *testing.T) {
	realm := krbtest.New(t, krb5.AES256SHA1)
	kdc := krbtest.NewKDC(realm, time.Hour)
	keytab, config := write(t, kdc.Keytab()), write(t, kdc.Config())
	get := func(o Options) error {
		if o.Service == "" {
			o.Service = krbtest.Service
		}
		l, err := New(o)
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = l.Ticket(ctx)
		}
		return err
	}
	cache := write(t, krbtest.Cache(realm.Ticket("alice", time.Now(), time.Hour)))
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"nothing":                {Options{}, "kinit"},
		"no such client":         {Options{Keytab: keytab, Principal: "bob", Config: config}, "no key of bob"},
		"service of other realm": {Options{Keytab: keytab, Service: "nfs/h@OTHER", Config: config}, "another realm"},
		"no service":             {Options{Keytab: keytab, Service: "nfs/", Config: config}, "principal"},
		"no configuration":       {Options{Keytab: keytab, Config: "/nonexistent/krb5.conf"}, "/nonexistent/krb5.conf"},
		"no KDC":                 {Options{Keytab: keytab, Config: write(t, []byte("[libdefaults]\n dns_lookup_kdc = false\n"))}, "no KDC"},
		"cache of somebody else": {Options{Cache: cache, Principal: "bob"}, "belongs to alice"},
		"cache of another kind":  {Options{Cache: "KEYRING:persistent:0"}, "only FILE"},
		"no cache":               {Options{Cache: "/nonexistent/cache"}, "no such file"},
		"not a cache":            {Options{Cache: keytab}, "not a credential cache"},
		"expired":                {Options{Cache: write(t, krbtest.Cache(realm.Ticket("alice", time.Now().Add(-2*time.Hour), time.Hour)))}, "run kinit"},
		"ticket for another":     {Options{Cache: cache, Service: "nfs/other.test"}, "run kinit"},
	} {
		if err := get(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for code, want := range map[int32]string{6: "does not know the client", 24: "not the client's", 37: "clocks", 99: "error 99"} {
		kdc.Refuse.Store(code)
		var refused *krb5.KDCError
		if err := get(Options{Keytab: keytab, Config: config}); !errors.As(err, &refused) || refused.Code != int64(code) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "says the test") {
			t.Errorf("%d: %v", code, err)
		}
	}
	kdc.Refuse.Store(0)
	kdc.Wrong.Store(true)
	if err := get(Options{Keytab: keytab, Config: config}); err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("a reply of somebody else: %v", err)
	}
}

func TestCache(t *testing.T) {
	realm := krbtest.New(t, krb5.AES256SHA1)
	want := realm.Ticket("alice", time.Now(), time.Hour)
	b := krbtest.Cache(want)
	l, err := New(Options{Cache: write(t, b), Principal: "alice@REALM.TEST", Service: krbtest.Service})
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Ticket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Message, want.Message) || !bytes.Equal(got.Session.Value, want.Session.Value) || got.Session.EType != want.Session.EType || !got.End.Equal(want.End) || got.Client.String() != want.Client.String() {
		t.Errorf("%+v", got)
	}
	if accepted(t, realm, got) != "alice@REALM.TEST" {
		t.Error("another client")
	}
	// Cut anywhere, or with any length changed: an error or fewer entries, never a panic.
	for i := range b {
		if c, err := parseCache(b[:i]); err == nil && len(c.entries) == 2 {
			t.Errorf("cut at %d, and complete", i)
		}
	}
	for i := 0; i+4 <= len(b); i++ {
		for _, v := range []uint32{0xffffffff, 0x7fffffff, 0x80000000, 1 << 20} {
			d := bytes.Clone(b)
			binary.BigEndian.PutUint32(d[i:], v)
			_, _ = parseCache(d)
		}
	}
}

func FuzzCache(f *testing.F) {
	realm := krbtest.New(f, krb5.AES256SHA1)
	f.Add(krbtest.Cache(realm.Ticket("alice", time.Now(), time.Hour)))
	f.Add([]byte{5, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 'R'})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCache(b)
		if err != nil {
			return
		}
		service, _ := krb5.ParsePrincipal(krbtest.Service)
		if e := c.find(&service, time.Unix(0, 0)); e != nil && len(e.message) > len(b) {
			t.Fatal("a ticket that is not there")
		}
	})
}
