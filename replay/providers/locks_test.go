package providers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/portmap"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/udprpc"
)

// locker is a client of NLM.
type locker struct {
	*testing.T
	transport.Requester
	svid    int32
	granted chan nlm.Nlm4Testargs
}

func newLocker(t *testing.T, r transport.Requester, svid int32) *locker {
	l := &locker{T: t, Requester: r, svid: svid, granted: make(chan nlm.Nlm4Testargs, 4)}
	t.Cleanup(func() { _ = r.Close() })
	r.Serve(transport.HandlerFunc(func(x transport.Exchange) {
		var h oncrpc.Call
		b := x.Call().Stream
		var in xdr.Reader
		var a nlm.Nlm4Testargs
		if err := h.Decode(b, len(b)); err != nil || h.Program != nlm.NLM_PROG || h.Version != 4 || h.Procedure != nlm.NLMPROC4_GRANTED {
			t.Errorf("%v, %+v", err, h)
			x.Drop()
			return
		}
		in.Reset(append([]byte(nil), b[h.Size():]...), len(b)-h.Size())
		a.Decode(&in)
		l.granted <- a
		out := (&oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}).Append(nil)
		x.Reply(&transport.Message{Stream: (&nlm.Nlm4Res{Cookie: a.Cookie}).Append(out)})
	}))
	return l
}

func (l *locker) call(procedure uint32, args, res xdr.Message) {
	l.Helper()
	h := oncrpc.Call{Program: nlm.NLM_PROG, Version: 4, Procedure: procedure, Cred: client.Sys("client", 0, 0)}
	if err := portmap.Do(context.Background(), l.Requester, h, args, res, time.Minute); err != nil {
		l.Fatal(err)
	}
}

func (l *locker) alock(fh []byte) nlm.Nlm4Lock {
	return nlm.Nlm4Lock{CallerName: []byte("client"), Fh: fh, Oh: fmt.Appendf(nil, "%d@client", l.svid), Svid: l.svid}
}

func (l *locker) lock(fh []byte, block bool) nlm.Nlm4Stats {
	l.Helper()
	var res nlm.Nlm4Res
	l.call(nlm.NLMPROC4_LOCK, &nlm.Nlm4Lockargs{Block: block, Exclusive: true, Alock: l.alock(fh)}, &res)
	return res.Stat.Stat
}

func (l *locker) unlock(fh []byte) {
	l.Helper()
	var res nlm.Nlm4Res
	if l.call(nlm.NLMPROC4_UNLOCK, &nlm.Nlm4Unlockargs{Alock: l.alock(fh)}, &res); res.Stat.Stat != nlm.NLM4_GRANTED {
		l.Error(res.Stat.Stat)
	}
}

func (l *locker) told() {
	l.Helper()
	select {
	case a := <-l.granted:
		if a.Alock.Svid != l.svid {
			l.Errorf("%+v", a)
		}
	case <-time.After(time.Minute):
		l.Fatal("no GRANTED")
	}
}

// TestLocks: locks of NFSv3, over TCP and UDP, and of NFSv4 exclude each other.
func TestLocks(t *testing.T) {
	ctx := context.Background()
	srv := NewServer(memory.New(memory.Options{Size: 1 << 20}), ServerOptions{RPC: nfsserver.Options{}})
	defer srv.Close()
	f, err := Open(Options{Name: "tcp"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := f.Listen(ctx, netip.MustParseAddrPort("127.0.0.1:0"), srv)
	if err != nil {
		t.Fatal(err)
	}
	udp, err := ListenLocks(ctx, netip.MustParseAddrPort("127.0.0.1:0"), srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	dial := func() transport.Requester {
		r, err := f.Dial(ctx, l.Addr(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	v4, err := client.NewV4(ctx, client.RPC{Requester: dial(), Cred: client.Sys("four", 0, 0)}, client.V4Options{Minor: 1})
	if err != nil {
		t.Fatal(err)
	}
	root, err := v4.Root(ctx, "/")
	if err != nil {
		t.Fatal(err)
	}
	file, err := v4.Create(ctx, root, "file", client.Mode(0o666), false)
	if err != nil {
		t.Fatal(err)
	}
	u, err := udprpc.Dial(ctx, udp.Addr().String(), udprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := newLocker(t, dial(), 1), newLocker(t, u, 2)
	if st := a.lock(file.Handle, false); st != nlm.NLM4_GRANTED {
		t.Fatal(st)
	}
	if _, err := v4.Lock(ctx, file, []byte("owner"), true, 0, math.MaxUint64); !client.IsStatus(err, uint32(nfs4.NFS4ERR_DENIED)) {
		t.Errorf("NFSv4: %v", err)
	}
	if st := b.lock(file.Handle, true); st != nlm.NLM4_BLOCKED {
		t.Fatal(st)
	}
	a.unlock(file.Handle)
	b.told() // over UDP
	b.unlock(file.Handle)
	held, err := v4.Lock(ctx, file, []byte("owner"), true, 0, math.MaxUint64)
	if err != nil {
		t.Fatal(err)
	}
	if st := a.lock(file.Handle, false); st != nlm.NLM4_DENIED {
		t.Error(st)
	}
	if st := a.lock(file.Handle, true); st != nlm.NLM4_BLOCKED {
		t.Error(st)
	}
	if err := v4.Unlock(ctx, held); err != nil {
		t.Fatal(err)
	}
	a.told() // over TCP
	// The lock outlives the file's being open, and ends when its host restarts.
	if err := v4.Close(ctx, file); err != nil {
		t.Fatal(err)
	}
	if n := srv.nfs4.State(); n.Ranges != 1 {
		t.Errorf("%+v", n)
	}
	h := oncrpc.Call{Program: nsm.SM_PROG, Version: nsm.SM_VERS, Procedure: nsm.SM_NOTIFY}
	if err := portmap.Do(ctx, u, h, &nsm.StatChge{MonName: []byte("client"), State: 3}, nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := srv.nfs4.State(); n.Ranges != 0 {
		t.Errorf("%+v", n)
	}
	// Over UDP there are locks and nothing else.
	var refused *portmap.StatusError
	if err := portmap.Do(ctx, u, oncrpc.Call{Program: 100003, Version: 3}, nil, nil, time.Minute); !errors.As(err, &refused) {
		t.Errorf("NFS over UDP: %v", err)
	}
}

// TestPortmap: clients find the lock manager.
func TestPortmap(t *testing.T) {
	ctx := context.Background()
	for _, host := range []string{"127.0.0.1", "::1"} {
		p, err := Portmap(ctx, netip.AddrPortFrom(netip.MustParseAddr(host), 0), 2049, 2050, Options{})
		if err != nil {
			if host == "::1" {
				t.Logf("without IPv6: %v", err)
				continue
			}
			t.Fatal(err)
		}
		defer p.Close()
		for _, network := range []string{"tcp", "udp"} {
			dial := func(_ context.Context, by string, at netip.AddrPort) (transport.Requester, error) {
				if by != network {
					return nil, errors.New("not by this one")
				}
				if at.Port() != portmap.Port {
					t.Errorf("asked at %v", at)
				}
				return DialClient(ctx, by, p.Addr())
			}
			by, at, err := portmap.Find(ctx, dial, p.Addr().Addr(), nlm.NLM_PROG, 4)
			if err != nil || by != "tcp" || at.Port() != 2049 {
				t.Errorf("%s, %s: %s %v, %v", host, network, by, at, err)
			}
			if _, _, err := portmap.Find(ctx, dial, p.Addr().Addr(), 300000, 1); !errors.Is(err, portmap.ErrNotRegistered) {
				t.Errorf("%s, %s: %v", host, network, err)
			}
		}
		r, err := DialClient(ctx, "tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if port, err := portmap.Ask(ctx, r, p.Addr().Addr(), "udp", nsm.SM_PROG, 1); err != nil || port != 2050 {
			t.Errorf("%d, %v", port, err)
		}
		_ = r.Close()
		for network, refused := range map[string]bool{"tcp": false, "udp": true} {
			r, err := DialClient(ctx, network, p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			err = portmap.Do(ctx, r, oncrpc.Call{Program: 100000, Version: 2, Procedure: 4}, nil, nil, time.Minute)
			if (err != nil) != refused {
				t.Errorf("DUMP over %s: %v", network, err)
			}
			_ = r.Close()
		}
	}
}
