package gss_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/krbtest"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/gss"
	"github.com/rpcrdma/toolkit/replay/gss/accept"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/transport"
)

var services = map[string]oncrpc.Service{"krb5": oncrpc.ServiceNone, "krb5i": oncrpc.ServiceIntegrity, "krb5p": oncrpc.ServicePrivacy}

func flavorOf(s oncrpc.Service) oncrpc.Flavor { return oncrpc.PseudoKrb5 + oncrpc.Flavor(s-1) }

// bed is a server with Kerberos and the connections to it.
type bed struct {
	t       *testing.T
	realm   *krbtest.Realm
	server  *providers.Server
	clients *providers.Fabric
	at      providers.Listener
	lose    atomic.Bool
}

// ServeRPC implements transport.Handler: the server, with an optional fault.
func (b *bed) ServeRPC(x transport.Exchange) {
	if b.lose.CompareAndSwap(true, false) {
		x = lossy{x}
	}
	b.server.ServeRPC(x)
}

// lossy is a call whose reply is lost, with the connection.
type lossy struct{ transport.Exchange }

func (x lossy) Reply(m *transport.Message) {
	if m.Release != nil {
		m.Release()
	}
	x.Disconnect()
	x.Drop()
}

func newBed(t *testing.T, o providers.Options, e krb5.EType, k accept.Options, flavors ...oncrpc.Flavor) *bed {
	t.Helper()
	b := &bed{t: t, realm: krbtest.New(t, e)}
	k.Keytab = b.realm.Keytab()
	if flavors == nil {
		flavors = []oncrpc.Flavor{oncrpc.AuthSys, oncrpc.PseudoKrb5, oncrpc.PseudoKrbI, oncrpc.PseudoKrbP}
	}
	if k.Users == nil {
		list, err := accept.ParseList(strings.NewReader("alice@" + krbtest.Name + " 1000 1000 100\nroot@" + krbtest.Name + " 0 0\n"))
		if err != nil {
			t.Fatal(err)
		}
		k.Users = list
	}
	b.server = providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{Kerberos: k, RPC: nfsserver.Options{Flavors: flavors}})
	servers, clients, at, err := providers.Pair(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := servers.Listen(t.Context(), at, b)
	if err != nil {
		t.Fatal(err)
	}
	b.clients, b.at = clients, l
	t.Cleanup(func() {
		if err := errors.Join(clients.Close(), servers.Close(), b.server.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bed) dial() transport.Requester {
	b.t.Helper()
	r, err := b.clients.Dial(b.t.Context(), b.at.Addr(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bed) secure(inner transport.Requester, s oncrpc.Service, who string) *gss.Requester {
	b.t.Helper()
	r, err := gss.New(b.t.Context(), inner, gss.Options{Service: s, Tickets: b.realm.Tickets(who), Program: 100003, Version: 3, Timeout: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// work creates a directory and in it a file too large for one message, and reads everything back.
func work(ctx context.Context, fs client.FS, size int) error {
	root, err := fs.Root(ctx, "/")
	if err != nil {
		return fmt.Errorf("root: %w", err)
	}
	dir, err := fs.Mkdir(ctx, root, fmt.Sprintf("dir%d-%s", size, fs.Version()), client.Mode(0o755))
	if err != nil {
		return fmt.Errorf("mkdir: %w", err)
	}
	f, err := fs.Create(ctx, dir, "file", client.Mode(0o644), false)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	data, err := fs.Alloc(size)
	if err != nil {
		return err
	}
	defer fs.Free(data)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	if n, err := fs.Write(ctx, f, 0, data, true); err != nil || n != size {
		return fmt.Errorf("write: %d, %w", n, err)
	}
	back, err := fs.Alloc(size)
	if err != nil {
		return err
	}
	defer fs.Free(back)
	if n, _, err := fs.Read(ctx, f, 0, back); err != nil || n != size {
		return fmt.Errorf("read: %d, %w", n, err)
	}
	if !bytes.Equal(data, back) {
		return errors.New("other bytes come back")
	}
	if err := fs.Close(ctx, f); err != nil {
		return err
	}
	for i := range 40 { // a READDIR that is long, too
		if _, err := fs.Symlink(ctx, dir, fmt.Sprintf("%0100d", i), "x", client.SetAttr{}); err != nil {
			return err
		}
	}
	names := 0
	if err := fs.Readdir(ctx, dir, func(client.Entry) bool { names++; return true }); err != nil || names != 41 {
		return fmt.Errorf("readdir: %d, %w", names, err)
	}
	return fs.Shutdown(ctx)
}

// TestFlavors works with files in each flavor, over each fabric, as NFSv3 and NFSv4.
func TestFlavors(t *testing.T) {
	for _, fabric := range []string{"tcp", "iwarp", "rocev2"} {
		for sec, service := range services {
			t.Run(fabric+" "+sec, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				b := newBed(t, providers.Options{Name: fabric}, krb5.AES256SHA1, accept.Options{}, flavorOf(service))
				r := b.secure(b.dial(), service, "root")
				rpc := client.RPC{Requester: r}
				for _, size := range []int{1, 997, 70001} {
					if err := work(ctx, client.NewV3(rpc), size); err != nil {
						t.Errorf("NFSv3, %d bytes: %v", size, err)
					}
					for _, minor := range []uint32{0, 1, 2} {
						fs, err := client.NewV4(ctx, rpc, client.V4Options{Minor: minor, Owner: []byte(fmt.Sprint("client ", size, minor))})
						if err != nil {
							t.Fatal(err)
						}
						if err := work(ctx, fs, size); err != nil {
							t.Errorf("NFSv4.%d, %d bytes: %v", minor, size, err)
						}
					}
				}
				moved := r.Stats().Reads + r.Stats().Writes + b.at.Stats().Reads + b.at.Stats().Writes
				if fabric != "tcp" && moved == 0 {
					t.Error("nothing went through chunks")
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				s, _ := b.server.Kerberos()
				if s.Contexts != 1 || s.Calls < 100 || s.Forged+s.Repeated+s.Refused+s.Unknown != 0 {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// TestETypes creates contexts of all encryption types for which the library makes tickets. Its
// keys of AES256SHA384 are too short; package krb5 tests that type.
func TestETypes(t *testing.T) {
	for _, e := range []krb5.EType{krb5.AES128SHA1, krb5.AES256SHA1, krb5.AES128SHA256} {
		b := newBed(t, providers.Options{Name: "tcp"}, e, accept.Options{})
		for name, service := range services {
			r := b.secure(b.dial(), service, "alice")
			rpc := client.RPC{Requester: r}
			if err := rpc.Null(t.Context(), 3); err != nil {
				t.Errorf("%v, %s: %v", e, name, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestNotAllowed calls with flavors that the export does not have.
func TestNotAllowed(t *testing.T) {
	b := newBed(t, providers.Options{Name: "tcp"}, krb5.AES256SHA1, accept.Options{}, oncrpc.PseudoKrbP, oncrpc.PseudoKrbI)
	plain := client.RPC{Requester: b.dial(), Cred: client.Sys("m", 0, 0)}
	defer plain.Requester.Close()
	weak := client.RPC{Requester: b.secure(b.dial(), oncrpc.ServiceNone, "root")}
	defer weak.Requester.Close()
	for i, rpc := range []client.RPC{plain, weak} {
		if err := rpc.Null(t.Context(), 3); err != nil {
			t.Errorf("NULL is for everybody: %v", err)
		}
		var denied *client.DeniedError
		fs := client.NewV3(rpc)
		root, err := fs.Root(t.Context(), "/") // MOUNT lists the flavors, so it is open to everybody
		if err != nil {
			t.Error(err)
		}
		if _, err := fs.Getattr(t.Context(), root); !errors.As(err, &denied) || denied.Status != "AUTH_ERROR" {
			t.Errorf("GETATTR: %v", err)
		}
		for _, minor := range []uint32{0, 1} {
			v4, err := client.NewV4(t.Context(), rpc, client.V4Options{Minor: minor, Owner: []byte(fmt.Sprint(i, minor))})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v4.Root(t.Context(), "/"); !client.IsStatus(err, uint32(nfs4.NFS4ERR_WRONGSEC)) {
				t.Errorf("NFSv4.%d: %v", minor, err)
			}
		}
	}
	good := client.RPC{Requester: b.secure(b.dial(), oncrpc.ServiceIntegrity, "root")}
	defer good.Requester.Close()
	if _, err := client.NewV3(good).Root(t.Context(), "/"); err != nil {
		t.Error(err)
	}
}

// TestSecinfo asks for the allowed flavors with one that is not among them.
func TestSecinfo(t *testing.T) {
	b := newBed(t, providers.Options{Name: "tcp"}, krb5.AES256SHA1, accept.Options{}, oncrpc.PseudoKrbP, oncrpc.PseudoKrb5)
	secure := b.secure(b.dial(), oncrpc.ServicePrivacy, "root")
	defer secure.Close()
	v3 := client.NewV3(client.RPC{Requester: secure})
	root, err := v3.Root(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v3.Mkdir(t.Context(), root, "d", client.Mode(0o755)); err != nil {
		t.Fatal(err)
	}
	r := b.dial()
	defer r.Close()
	for _, ask := range []bool{true, false} {
		for _, minor := range []uint32{0, 1} {
			args := &nfs4.CompoundArgs{Minorversion: minor}
			add := func(n nfs4.NfsOpnum4, body xdr.Message) {
				args.Ops = append(args.Ops, nfs4.Op{Number: uint32(n), Body: body})
			}
			add(nfs4.OP_PUTROOTFH, xdr.Void{})
			want := nfs4.NFS4ERR_WRONGSEC
			if minor == 1 {
				want = nfs4.NFS4ERR_OP_NOT_IN_SESSION
			} else if ask {
				add(nfs4.OP_SECINFO, &nfs4.SECINFO4args{Name: []byte("d")})
				want = nfs4.NFS4ERR_NOFILEHANDLE // SECINFO has used it up
			}
			add(nfs4.OP_GETATTR, &nfs4.GETATTR4args{})
			var c client.Call
			c.Build(client.Procedure{Program: nfs4.NFS4_PROGRAM, Version: nfs4.NFS_V4, Number: nfs4.NFSPROC4_COMPOUND}, client.Sys("m", 0, 0), args)
			if err := r.Do(t.Context(), &c.Call); err != nil {
				t.Fatal(err)
			}
			var res nfs4.CompoundRes
			if err := c.Decode(&res); err != nil || res.Status != want {
				t.Errorf("%v, minor version %d: %v, %v; want %v", ask, minor, res.Status, err, want)
			}
			if !ask || minor == 1 {
				continue
			}
			got := res.Ops[1].Body.(*nfs4.SECINFO4res).Resok4
			if len(got) != 2 || got[0].Flavor != nfs4.RPCSEC_GSS || got[0].FlavorInfo.Service != nfs4.RPC_GSS_SVC_PRIVACY || got[1].FlavorInfo.Service != nfs4.RPC_GSS_SVC_NONE {
				t.Errorf("%+v", got)
			}
		}
	}
	fs := client.NewV3(client.RPC{Requester: r})
	if _, err := fs.Root(t.Context(), "/"); err != nil {
		t.Error(err)
	}
}

// TestIdentity distinguishes principals that are the same user, and maps those in the list.
func TestIdentity(t *testing.T) {
	b := newBed(t, providers.Options{Name: "tcp"}, krb5.AES256SHA1, accept.Options{})
	ctx := t.Context()
	as := func(who string) client.FS {
		r := b.secure(b.dial(), oncrpc.ServiceIntegrity, who)
		t.Cleanup(func() { _ = r.Close() })
		return client.NewV3(client.RPC{Requester: r})
	}
	root := as("root")
	top, err := root.Root(ctx, "/")
	if err != nil {
		t.Fatal(err)
	}
	uid, gid := uint32(1000), uint32(1000)
	mode := uint32(0o700)
	home, err := root.Mkdir(ctx, top, "home", client.SetAttr{Mode: &mode, UID: &uid, GID: &gid})
	if err != nil {
		t.Fatal(err)
	}
	for who, ok := range map[string]bool{"alice": true, "root": true, "bob": false, "alice@OTHER.TEST": false, "root/admin": false} {
		_, err := as(who).Create(ctx, home, "f-"+strings.ReplaceAll(who, "/", "-"), client.Mode(0o600), false)
		if (err == nil) != ok {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// TestRenewal makes a server forget contexts, and tickets expire.
func TestRenewal(t *testing.T) {
	for _, fabric := range []string{"tcp", "iwarp"} {
		b := newBed(t, providers.Options{Name: fabric}, krb5.AES256SHA1, accept.Options{Contexts: 1})
		first := b.secure(b.dial(), oncrpc.ServicePrivacy, "root")
		second := b.secure(b.dial(), oncrpc.ServiceIntegrity, "root") // the first context is gone
		for range 3 {
			for _, r := range []*gss.Requester{first, second} {
				rpc := client.RPC{Requester: r}
				if err := rpc.Null(t.Context(), 3); err != nil {
					t.Fatal(err)
				}
			}
		}
		if first.Renewals() < 3 || second.Renewals() < 2 {
			t.Errorf("%d and %d renewals", first.Renewals(), second.Renewals())
		}
		// Calls in the background, all of which have to be sent again.
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range 200 {
			wg.Add(1)
			c := &client.Call{}
			c.Build(client.Procedure{Program: 100003, Version: 3}, oncrpc.Auth{}, xdr.Void{})
			c.MaxReply = 1024
			c.Done = func(c *transport.Call) {
				if c.Err != nil || binary.BigEndian.Uint32(c.Reply.Stream[8:]) != 0 {
					failed.Add(1)
				}
				wg.Done()
			}
			first.Start(&c.Call)
		}
		wg.Wait()
		if failed.Load() > 0 {
			t.Errorf("%s: %d calls failed", fabric, failed.Load())
		}
		if err := errors.Join(first.Close(), second.Close()); err != nil {
			t.Error(err)
		}
		if s, _ := b.server.Kerberos(); s.Evicted == 0 || s.Unknown == 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestReconnect loses connections with calls in flight: the server must accept their
// retransmissions, which have new sequence numbers.
func TestReconnect(t *testing.T) {
	for _, fabric := range []string{"tcp", "iwarp", "rocev2"} {
		for _, service := range services {
			o := providers.Options{Name: fabric}
			o.TCP.Reconnect, o.Endpoint.Reconnect = true, true
			b := newBed(t, o, krb5.AES256SHA1, accept.Options{})
			r := b.secure(b.dial(), service, "root")
			rpc := client.RPC{Requester: r, Timeout: time.Minute}
			fs := client.NewV3(rpc)
			root, err := fs.Root(t.Context(), "/")
			if err != nil {
				t.Fatal(err)
			}
			b.lose.Store(true) // the reply, with the connection
			if _, err := fs.Mkdir(t.Context(), root, "d", client.Mode(0o755)); err != nil {
				t.Errorf("%s: %v", fabric, err) // the reply cache has the first reply
			}
			if n := r.Stats().Reconnects; n != 1 {
				t.Errorf("%s: %d reconnects", fabric, n)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
