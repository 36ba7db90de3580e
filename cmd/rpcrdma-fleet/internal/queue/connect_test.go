package queue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "nats", "context")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{"prod": `{"url":"tls://prod:4222","creds":"/prod.creds","ca":"/prod.ca","description":"x"}`, "bad": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		name string
		a    Address
		env  map[string]string
		want Address
		err  string
	}{
		{name: "nothing", err: "no NATS server"},
		{name: "flag", a: Address{Servers: "a,b"}, want: Address{Servers: "a,b"}},
		{name: "environment", env: map[string]string{"NATS_URL": "e", "NATS_CREDS": "c"}, want: Address{Servers: "e", Creds: "c"}},
		{name: "flag before environment", a: Address{Servers: "a", Creds: "mine"}, env: map[string]string{"NATS_URL": "e", "NATS_USER": "u", "NATS_PASSWORD": "p"}, want: Address{Servers: "a", Creds: "mine"}},
		{name: "token", env: map[string]string{"NATS_URL": "e", "NATS_USER": "t"}, want: Address{Servers: "e", Token: "t"}},
		{name: "context", a: Address{Context: "prod"}, want: Address{Servers: "tls://prod:4222", Creds: "/prod.creds", CA: "/prod.ca", Context: "prod"}},
		{name: "context of the environment, own server", a: Address{Servers: "a"}, env: map[string]string{"NATS_CONTEXT": "prod"}, want: Address{Servers: "a", Creds: "/prod.creds", CA: "/prod.ca", Context: "prod"}},
		{name: "no such context", a: Address{Context: "none"}, err: "none.json"},
		{name: "damaged context", a: Address{Context: "bad"}, err: "bad.json"},
		{name: "elsewhere", a: Address{Context: "../../x"}, err: "not the name"},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := x.a.Resolve(func(k string) string {
				if k == "HOME" {
					return home
				}
				return x.env[k]
			})
			if x.err != "" {
				if err == nil || !strings.Contains(err.Error(), x.err) {
					t.Errorf("error %v, want one with %q", err, x.err)
				}
				return
			}
			if err != nil || got != x.want {
				t.Errorf("%+v, %v, want %+v", got, err, x.want)
			}
		})
	}
	// A selected context is for those who name no server.
	if err := os.WriteFile(filepath.Join(home, ".config", "nats", "context.txt"), []byte("prod\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(k string) string { return map[string]string{"HOME": home}[k] }
	if a, err := (Address{}).Resolve(env); err != nil || a.Servers != "tls://prod:4222" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := (Address{Servers: "x"}).Resolve(env); err != nil || a.Creds != "" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestServers(t *testing.T) {
	for s, want := range map[string]string{
		"a,b:1, nats://c": "nats://a,nats://b:1,nats://c", "tls://x": "tls://x", "": "", "http://x": "", "nats://": "", ",": "", "nats://u:secret@[::x": "",
	} {
		list, err := Address{Servers: s}.servers()
		if got := strings.Join(list, ","); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", s, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password in an error: %v", err)
		}
	}
	if s := redacted([]string{"nats://u:secret@h"}); strings.Contains(s, "secret") {
		t.Error(s)
	}
}
