package v3_test

import (
	"bytes"
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// gate is a store in which an operation can be stopped.
type gate struct {
	store.Store
	armed          atomic.Bool
	enter, proceed chan struct{}
}

func (g *gate) pass() {
	if g.armed.CompareAndSwap(true, false) {
		g.enter <- struct{}{}
		<-g.proceed
	}
}

func (g *gate) SetAttr(c *store.Cred, h store.Handle, s *store.SetAttr, w *store.Wcc) error {
	g.pass()
	return g.Store.SetAttr(c, h, s, w)
}

func (g *gate) Create(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error) {
	g.pass()
	return g.Store.Create(c, dir, name, how, a, w)
}

func (g *gate) Mkdir(c *store.Cred, dir store.Handle, name []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	g.pass()
	return g.Store.Mkdir(c, dir, name, s, a, w)
}

func (g *gate) Symlink(c *store.Cred, dir store.Handle, name, text []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	g.pass()
	return g.Store.Symlink(c, dir, name, text, s, a, w)
}

func (g *gate) Link(c *store.Cred, h, dir store.Handle, name []byte, a *store.Attr, w *store.Wcc) error {
	g.pass()
	return g.Store.Link(c, h, dir, name, a, w)
}

func (g *gate) Remove(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
	g.pass()
	return g.Store.Remove(c, dir, name, w)
}

func (g *gate) Rmdir(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
	g.pass()
	return g.Store.Rmdir(c, dir, name, w)
}

func (g *gate) Rename(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
	g.pass()
	return g.Store.Rename(c, from, name, to, newName, wFrom, wTo)
}

// repeated is a call that must not be executed twice. Its message is encoded again for
// each attempt; what it needs is prepared by earlier calls.
type repeated struct {
	name      string
	procedure uint32
	args      func(t *fixture) xdr.Message
}

func repeatedCalls() []repeated {
	sized := func(n uint64) nfs3.Sattr3 { return nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: n}} }
	return []repeated{
		{"CREATE guarded", nfs3.NFSPROC3_CREATE, func(t *fixture) xdr.Message {
			a := &nfs3.CREATE3args{Where: nfstest.Where(t.root, "guarded")}
			a.How.Mode = nfs3.GUARDED
			return a
		}},
		{"CREATE exclusive", nfs3.NFSPROC3_CREATE, func(t *fixture) xdr.Message {
			a := &nfs3.CREATE3args{Where: nfstest.Where(t.root, "exclusive")}
			a.How.Mode = nfs3.EXCLUSIVE
			return a
		}},
		{"MKDIR", nfs3.NFSPROC3_MKDIR, func(t *fixture) xdr.Message {
			return &nfs3.MKDIR3args{Where: nfstest.Where(t.root, "made")}
		}},
		{"SETATTR guarded", nfs3.NFSPROC3_SETATTR, func(t *fixture) xdr.Message {
			f, _, err := t.Create(t.ctx, t.root, "set", 0o600)
			t.ok(err)
			at, err := t.Getattr(t.ctx, f)
			t.ok(err)
			a := &nfs3.SETATTR3args{Object: fh(f), NewAttributes: sized(5)}
			a.Guard.Check, a.Guard.ObjCtime = true, at.Ctime
			return a
		}},
		{"SYMLINK", nfs3.NFSPROC3_SYMLINK, func(t *fixture) xdr.Message {
			text := bytes.Repeat([]byte("text"), 250)
			a := &nfs3.SYMLINK3args{Where: nfstest.Where(t.root, "symlink")}
			a.Symlink.SymlinkData = xdr.Data{Length: uint32(len(text)), Inline: text}
			return a
		}},
		{"LINK", nfs3.NFSPROC3_LINK, func(t *fixture) xdr.Message {
			f, _, err := t.Create(t.ctx, t.root, "linked", 0o600)
			t.ok(err)
			return &nfs3.LINK3args{File: fh(f), Link: nfstest.Where(t.root, "link")}
		}},
		{"RENAME", nfs3.NFSPROC3_RENAME, func(t *fixture) xdr.Message {
			_, _, err := t.Create(t.ctx, t.root, "old", 0o600)
			t.ok(err)
			return &nfs3.RENAME3args{From: nfstest.Where(t.root, "old"), To: nfstest.Where(t.root, "new")}
		}},
		{"REMOVE", nfs3.NFSPROC3_REMOVE, func(t *fixture) xdr.Message {
			_, _, err := t.Create(t.ctx, t.root, "file", 0o600)
			t.ok(err)
			return &nfs3.REMOVE3args{Object: nfstest.Where(t.root, "file")}
		}},
		{"RMDIR", nfs3.NFSPROC3_RMDIR, func(t *fixture) xdr.Message {
			_, err := t.Mkdir(t.ctx, t.root, "dir", 0o700)
			t.ok(err)
			return &nfs3.RMDIR3args{Object: nfstest.Where(t.root, "dir")}
		}},
	}
}

// TestAgain ends the connection in the middle of operations that are not idempotent,
// and sends the calls again on another connection: before the operation has ended,
// after it, and when another user has the same XID.
func TestAgain(t *testing.T) {
	g := &gate{Store: memory.New(memory.Options{}), enter: make(chan struct{}), proceed: make(chan struct{})}
	s := nfsserver.New(nfsserver.Options{Workers: 4})
	s.Register(v3.New(g, v3.Options{}))
	p := loop.New(loop.Options{})
	over := map[string]func() transport.Requester{}
	lt, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", s, tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	over["tcp"] = func() transport.Requester {
		r, err := tcprpc.Dial(t.Context(), lt.Addr().String(), tcprpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	lr, err := endpoint.Listen(t.Context(), p, netip.MustParseAddrPort("127.0.0.1:0"), s, endpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	over["rdma"] = func() transport.Requester {
		r, err := endpoint.Dial(t.Context(), p, lr.Addr(), endpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Cleanup(func() {
		lt.Close()
		lr.Close()
		s.Close()
		p.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	info := g.Info()
	root := info.Handles.Append(nil, g.Root())
	xid := uint32(1 << 20)
	for name, dial := range over {
		prepare := dial()
		for _, c := range repeatedCalls() {
			// Names are used again by the other transport.
			top, err := nfstest.New3(prepare, 0, 0).Mkdir(ctx, root, name+" "+c.name, 0o755)
			if err != nil {
				t.Fatal(err)
			}
			f := &fixture{T: t, Client3: nfstest.New3(prepare, 0, 0), doer: prepare, root: top, ctx: ctx}
			args := c.args(f)
			xid++
			again := func() *transport.Call {
				call := &transport.Call{XID: xid, MaxReply: 2048}
				f.XID = xid
				call.Stream = args.Append(f.Header(c.procedure))
				return call
			}
			done := s.Stats().Duplicates
			first := dial()
			ended := make(chan struct{})
			g.armed.Store(true)
			lost := again()
			lost.Done = func(*transport.Call) { close(ended) }
			first.Start(lost)
			<-g.enter
			first.Close()
			<-ended
			var replies [][]byte
			second := dial()
			waits := make(chan struct{})
			early := again()
			early.Done = func(c *transport.Call) {
				replies = append(replies, c.Reply.AppendWhole(nil))
				close(waits)
			}
			second.Start(early)
			for s.Stats().Duplicates == done {
				time.Sleep(time.Millisecond)
			}
			g.proceed <- struct{}{}
			<-waits
			late := again()
			if err := second.Do(ctx, late); early.Err != nil || err != nil {
				t.Fatalf("%s %s: %v, %v", name, c.name, early.Err, err)
			}
			replies = append(replies, late.Reply.AppendWhole(nil))
			second.Close()
			if !bytes.Equal(replies[0], replies[1]) || len(replies[0]) < 28 || !bytes.Equal(replies[0][24:28], make([]byte, 4)) {
				t.Errorf("%s %s: % x, then % x", name, c.name, replies[0], replies[1])
			}
			if got := s.Stats().Duplicates - done; got != 2 {
				t.Errorf("%s %s: %d duplicates", name, c.name, got)
			}
			// Without the cache they fail, or the test shows nothing.
			if c.name != "CREATE exclusive" {
				fresh := again()
				fresh.XID = 0
				if err := prepare.Do(ctx, fresh); err != nil || bytes.Equal(fresh.Reply.AppendWhole(nil)[24:28], make([]byte, 4)) {
					t.Errorf("%s %s succeeds twice (%v)", name, c.name, err)
				}
			}
		}
		prepare.Close()
	}
	if st := s.Stats().Replies; st.Entries == 0 || st.Evicted != 0 || st.Unkept != 0 {
		t.Errorf("%+v", st)
	}
}
