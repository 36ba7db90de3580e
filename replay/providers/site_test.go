package providers_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

func TestResolve(t *testing.T) {
	for s, want := range map[string]string{
		"192.0.2.1": "192.0.2.1:20049", "192.0.2.1:99": "192.0.2.1:99", "fd00::1": "[fd00::1]:20049",
		"[fd00::1]": "[fd00::1]:20049", "[fd00::1]:7": "[fd00::1]:7", "::ffff:192.0.2.1": "192.0.2.1:20049",
	} {
		got, err := providers.Resolve(t.Context(), s, providers.PortRDMA)
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v; want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"192.0.2.1:x", "192.0.2.1:0", "192.0.2.1:70000"} {
		if got, err := providers.Resolve(t.Context(), s, 1); err == nil {
			t.Errorf("%s became %s", s, got)
		}
	}
}

// TestSplit reads names that nobody is asked for.
func TestSplit(t *testing.T) {
	type at struct {
		host string
		port uint16
	}
	for s, want := range map[string]at{
		"server": {"server", 0}, "server:2049": {"server", 2049}, "server.example.org.": {"server.example.org.", 0}, "my_host": {"my_host", 0},
		"rack1": {"rack1", 0}, "1password.example": {"1password.example", 0}, "bücher.example:1": {"bücher.example", 1},
		"192.0.2.1": {"192.0.2.1", 0}, "192.0.2.1:65535": {"192.0.2.1", 65535},
		"fe80::1%eth0": {"fe80::1%eth0", 0}, "[fe80::1%eth0]:2": {"fe80::1%eth0", 2}, "[::1]": {"::1", 0}, "::1": {"::1", 0},
	} {
		host, port, err := providers.Split(s)
		if err != nil || (at{host, port}) != want {
			t.Errorf("%q: %q, %d, %v; want %+v", s, host, port, err, want)
		}
	}
	for _, s := range []string{"", ":", ":1", "host:", "host:0", "host:65536", "host:-1", "host:+1", "host:nfs", "192.0.2.300", "192.0.2", "192.0.2.1.5:1", "7",
		"[", "[]", "[::1", "[::1:5", "::1]", "[::1]x", "[host]:1", "[192.0.2.1]:1", "1::2::3", "fd00::1:2:3:4:5:6:7:8:9", "host:1:2",
		"nfs://host", "//host", "host/export", "user@host", "a b", "a\tb", "a\nb", "a\x00b", "a\u202eb", "-host", strings.Repeat("x", 256)} {
		if host, port, err := providers.Split(s); err == nil {
			t.Errorf("%q became %q, %d", s, host, port)
		}
	}
}

// TestFabrics calls the built-in server over each fabric, with a tap and a link.
func TestFabrics(t *testing.T) {
	for _, name := range []string{"rocev2", "iwarp", "tcp"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			seen := make(packets, 1<<16)
			server, clients, at, err := providers.Pair(providers.Options{Name: name, Tap: seen, Link: verbs.Link{Delay: time.Millisecond}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{})
			l, err := server.Listen(ctx, at, s)
			if err != nil {
				t.Fatal(err)
			}
			r, err := clients.Dial(ctx, l.Addr(), nil)
			if err != nil {
				t.Fatal(err)
			}
			last := &timed{Requester: r}
			rpc := client.RPC{Requester: last}
			for _, version := range []uint32{3, 4} {
				if err := rpc.Null(ctx, version); err != nil {
					t.Errorf("version %d: %v", version, err)
				}
				if x := last.Times; x.Sent.Before(x.Queued) || x.Replied.Sub(x.Sent) < 2*time.Millisecond {
					t.Errorf("queued %v, sent %v, replied %v over a link of 1 ms", x.Queued, x.Sent, x.Replied)
				}
			}
			var denied *client.DeniedError
			if err := rpc.Null(ctx, 9); !errors.As(err, &denied) {
				t.Errorf("version 9: %v", err)
			}
			if len(seen) == 0 {
				t.Error("the tap saw nothing")
			}
			if s.Stats().Calls < 3 {
				t.Errorf("%+v", s.Stats())
			}
			if err := errors.Join(r.Close(), clients.Close(), server.Close(), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := providers.Open(providers.Options{Name: "carrier-pigeon"}); err == nil {
		t.Error("an unknown fabric was opened")
	}
	if _, err := providers.Open(providers.Options{Name: "rdma", Tap: make(packets, 1)}); err == nil {
		t.Error("an adapter was tapped")
	}
	if _, err := providers.Open(providers.Options{Name: "rdma", Local: make([]netip.Addr, 1)}); err == nil || !strings.Contains(err.Error(), "given address") {
		t.Errorf("an adapter connects from an address that is not used: %v", err)
	}
}

// timed keeps the times of the last call.
type timed struct {
	transport.Requester
	transport.Times
}

func (r *timed) Do(ctx context.Context, c *transport.Call) error {
	err := r.Requester.Do(ctx, c)
	r.Times = c.Times
	return err
}

// packets counts packets.
type packets chan int

func (p packets) Packet(_ time.Time, ip []byte) {
	select {
	case p <- len(ip):
	default:
	}
}

// TestChoose finds the fabric that a server is on.
func TestChoose(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	local, err := providers.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	f, err := providers.Open(providers.Options{Name: "iwarp"})
	if err != nil {
		t.Fatal(err)
	}
	s := providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{})
	l, err := f.Listen(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 0), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(f.Close(), s.Close()) }()
	name, tried, err := providers.Choose(ctx, l.Addr().String(), 3, providers.Options{Local: []netip.Addr{local}})
	for again := 0; err != nil && again < 5; again++ { // a server that a busy machine keeps from answering in time
		name, tried, err = providers.Choose(ctx, l.Addr().String(), 3, providers.Options{Local: []netip.Addr{local}})
	}
	if err != nil || name != "iwarp" {
		t.Errorf("%q, %v", name, err)
	}
	if n := len(tried); n != 3 || tried[n-1].Err != nil || tried[0].Err == nil || tried[1].Err == nil {
		t.Errorf("%+v", tried)
	}
}

// TestOneHandle: a directory has one file handle in all versions, so that who has
// mounted it over two may use one for the other.
func TestOneHandle(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, clients, at, err := providers.Pair(providers.Options{Name: "tcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{})
	l, err := server.Listen(ctx, at, s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := clients.Dial(ctx, l.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rpc := client.RPC{Requester: r, Cred: client.Sys("test", 0, 0)}
	v4, err := client.NewV4(ctx, rpc, client.V4Options{Minor: 1, Owner: []byte("test")})
	if err != nil {
		t.Fatal(err)
	}
	v3 := client.NewV3(rpc)
	a, err3 := v3.Root(ctx, "/")
	b, err4 := v4.Root(ctx, "/")
	if err := errors.Join(err3, err4); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%x in NFSv3, %x in NFSv4", a, b)
	}
	if _, err := v3.Getattr(ctx, b); err != nil {
		t.Error(err)
	}
	if err := errors.Join(v4.Shutdown(ctx), r.Close(), clients.Close(), server.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}
