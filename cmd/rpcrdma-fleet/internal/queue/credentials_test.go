package queue

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/testtools/natstest"
)

// address returns the address and credentials with which a role connects to s.
func address(t *testing.T, s *natstest.Server, role string) Address {
	t.Helper()
	a, err := Address{}.Resolve(func(k string) string { return s.Login(role)[k] })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Whoever is not let in is told why, as far as that can be known.
func TestCredentials(t *testing.T) {
	s := natstest.Documented(t, "../../../..", natstest.JWTs)
	whole := address(t, s, "reader")
	good, err := os.ReadFile(whole.Creds)
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	natstest.NewCA(t, other, "ca").Issue(t, other, "reader", time.Hour)
	token, _, _ := bytes.Cut(good, []byte("************************* IMPORTANT"))
	for _, x := range []struct {
		name   string
		change func(*Address)
		want   string // "" if it works
	}{
		{"all", func(*Address) {}, ""},
		{"no credentials", func(a *Address) { a.Creds = "" }, "Authorization Violation"},
		{"expired", func(a *Address) { a.Creds = s.Creds(t, "late", "reader", -time.Minute) }, `credentials of "late" in ` + filepath.Join(filepath.Dir(whole.Creds), "late.creds") + " expired at 20"},
		{"of another account", func(a *Address) { a.Creds = s.ForeignCreds(t, "foreign", "reader") }, `credentials of "foreign" in `},
		{"of another role", func(a *Address) { a.Creds = address(t, s, "worker").Creds }, `no permission for _INBOX_rpcrdma_reader.>`},
		{"no such file", func(a *Address) { a.Creds = filepath.Join(other, "none") }, "none: no such file"},
		{"a folder", func(a *Address) { a.Creds = other }, "not a file of credentials"},
		{"no credentials in it", func(a *Address) { a.Creds = write(t, "x.creds", "hello") }, "x.creds has no credentials of NATS"},
		{"an empty file", func(a *Address) { a.Creds = write(t, "x.creds", "") }, "x.creds has no credentials of NATS"},
		{"a JWT without its key", func(a *Address) { a.Creds = write(t, "x.creds", string(token)) }, "x.creds has a JWT, but not its key"},
		{"password in place of credentials", func(a *Address) { a.Creds, a.User, a.Pass = "", "reader", "secret-reader" }, "Authorization Violation"},
		{"unknown NKey", func(a *Address) {
			a.Creds, a.NKey = "", write(t, "x.nk", "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU\n")
		}, "Authorization Violation"},
		{"no such NKey", func(a *Address) { a.Creds, a.NKey = "", filepath.Join(other, "none") }, "none: "},
		{"no certificate", func(a *Address) { a.Cert, a.Key = "", "" }, "certificate"},
		{"certificate of another CA", func(a *Address) {
			a.Cert, a.Key = filepath.Join(other, "reader.pem"), filepath.Join(other, "reader-key.pem")
		}, "certificate"},
		{"expired certificate", func(a *Address) { a.Cert, a.Key = s.Certificate(t, "old", -time.Hour) }, "old.pem expired at 20"},
		{"unknown server", func(a *Address) { a.CA = filepath.Join(other, "ca.pem") }, "certificate signed by unknown authority"},
		{"certificate without key", func(a *Address) { a.Key = "" }, "needs its key"},
		{"no such certificate", func(a *Address) { a.Cert = filepath.Join(other, "none") }, "none: no such file"},
	} {
		a := whole
		x.change(&a)
		nc, err := Dial(a, Reader, "test", func(string, ...any) {})
		switch {
		case x.want == "" && err != nil, x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		case err != nil && (strings.Contains(err.Error(), "SU") || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: a secret in an error: %v", x.name, err)
		}
		if err == nil {
			nc.Close()
		}
	}
}

// Credentials that expire while they are used end the program, unless the file has new ones by then.
func TestExpiry(t *testing.T) {
	s := natstest.Documented(t, "../../../..", natstest.JWTs)
	ended := make(chan error, 2)
	for _, name := range []string{"left", "renewed"} {
		back := make(chan struct{}, 1)
		a, nc := expiring(t, s, name, func(format string, _ ...any) {
			if strings.HasPrefix(format, "NATS is back") {
				select {
				case back <- struct{}{}:
				default:
				}
			}
		})
		ctx, unbind := Bound(t.Context(), nc, a)
		t.Cleanup(unbind)
		returned := back
		if name == "left" { // within the second in which they expire, the server may let it in once more
			returned = nil
		}
		go func() {
			select {
			case <-ctx.Done():
				err := Refused(ctx)
				if name != "left" || !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "left.creds expired at") {
					ended <- fmt.Errorf("%s ended: %w", name, err)
					return
				}
				ended <- nil
			case <-returned:
				ended <- nil
			case <-time.After(patience):
				ended <- errors.New(name + " goes on")
			}
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// expiring connects with credentials that expire soon, but not before it returns. Those that are renewed have others in
// their place by then.
func expiring(t *testing.T, s *natstest.Server, name string, note func(string, ...any)) (Address, *nats.Conn) {
	t.Helper()
	a := address(t, s, "reader")
	for valid := 2 * time.Second; ; valid *= 2 {
		expires := time.Now().Add(valid - time.Second) // at the earliest: they have whole seconds
		a.Creds = s.Creds(t, name, "reader", valid)
		nc, err := Dial(a, Reader, name, note)
		if err == nil && name == "renewed" {
			s.Creds(t, name, "reader", time.Hour)
		}
		if time.Now().Before(expires) {
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nc.Close)
			return a, nc
		}
		if err == nil {
			nc.Close()
		}
		if valid > time.Minute {
			t.Fatalf("connecting takes longer than %v: %v", valid, err)
		}
	}
}

// A signal ends a context of Bound like any other.
func TestBound(t *testing.T) {
	s := natstest.Documented(t, "../../../..", natstest.Passwords)
	a := address(t, s, "agent")
	nc, err := Dial(a, Agent, "test", natstest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, unbind := Bound(t.Context(), nc, a)
	unbind()
	if <-ctx.Done(); Refused(ctx) != nil {
		t.Error(Refused(ctx))
	}
	nc.Close()
	ctx, unbind = Bound(t.Context(), nc, a)
	defer unbind()
	if <-ctx.Done(); Refused(ctx) == nil {
		t.Error("the connection is closed, and nothing says so")
	}
}
