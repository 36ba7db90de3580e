package guard_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// direct is a connection to a server in the same goroutine.
type direct struct {
	transport.Requester
	server transport.Handler
	apart  bool // items travel apart, as over RDMA; otherwise in their places
	xid    uint32
	calls  int
}

func (d *direct) Do(_ context.Context, c *transport.Call) error {
	d.xid++
	d.calls++
	x := &exchange{}
	if d.apart {
		x.call = transport.Message{Stream: slices.Clone(c.Stream), Items: c.Items}
	} else {
		x.call.Stream = c.AppendWhole(nil)
	}
	if len(x.call.Stream) >= 4 {
		binary.BigEndian.PutUint32(x.call.Stream, d.xid)
	}
	d.server.ServeRPC(x)
	if !x.done {
		return errors.New("no reply")
	}
	c.Err, c.Reply = nil, transport.Message{Stream: x.reply}
	return nil
}

func (d *direct) Start(c *transport.Call) {
	c.Err = d.Do(context.Background(), c)
	if c.Done != nil {
		c.Done(c)
	}
}

func (*direct) Alloc(n int) ([]byte, error) { return make([]byte, n), nil }
func (*direct) Free([]byte)                 {}
func (*direct) Close() error                { return nil }

// exchange is a call under way.
type exchange struct {
	call  transport.Message
	reply []byte
	done  bool
}

func (x *exchange) Call() *transport.Message { return &x.call }
func (*exchange) Peer() transport.Peer       { return transport.Peer{ID: 1} }
func (*exchange) MaxResult(int) uint32       { return 0 }
func (x *exchange) Reply(m *transport.Message) {
	x.reply, x.done = m.AppendWhole(nil), true
	if m.Release != nil {
		m.Release()
	}
}
func (*exchange) Drop()                         {}
func (*exchange) Disconnect()                   {}
func (*exchange) Backward() transport.Requester { return nil }
func (*exchange) OnClose(any, func())           {}

// owner begins the names of the fixture's clients.
const owner = "this run/"

// host begins the names of our hosts (NLM).
const host = "this-run."

// fixture is the built-in server with a base, and canaries beside it:
//
//	/canary  /beside/canary2  /base/file  /base/dir/deep
type fixture struct {
	tb     testing.TB
	server *providers.Server
	wire   *direct
	plain  *client.V3 // without a guard
	guard  *guard.Guard
	sent   transport.Requester // behind the guard
	cred   oncrpc.Auth
	write  bool

	root, base, file, dir, canary, beside, canary2 []byte
}

func newFixture(tb testing.TB, write bool) *fixture {
	tb.Helper()
	f := &fixture{tb: tb, write: write, server: providers.NewServer(memory.New(memory.Options{Size: 64 << 20, Generation: 1, HandleKey: store.Key{1}}), providers.ServerOptions{RPC: nfsserver.Options{Replies: -1}})}
	f.wire = &direct{server: f.server}
	f.cred = client.Sys("m", 0, 0)
	f.plain = client.NewV3(client.RPC{Requester: &direct{server: f.server}, Cred: f.cred})
	ctx := context.Background()
	must := func(h []byte, err error) []byte {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return h
	}
	create := func(dir []byte, name, text string) []byte {
		tb.Helper()
		file, err := f.plain.Create(ctx, dir, name, client.Mode(0o666), true)
		if err != nil {
			tb.Fatal(err)
		}
		_, err = f.plain.Write(ctx, file, 0, []byte(text), true)
		return must(file.Handle, err)
	}
	f.root = must(f.plain.Root(ctx, "/"))
	f.base = must(f.plain.Mkdir(ctx, f.root, "base", client.Mode(0o777)))
	f.canary = create(f.root, "canary", "alive")
	f.beside = must(f.plain.Mkdir(ctx, f.root, "beside", client.Mode(0o777)))
	f.canary2 = create(f.beside, "canary2", "alive, too")
	f.file = create(f.base, "file", "inside")
	f.dir = must(f.plain.Mkdir(ctx, f.base, "dir", client.Mode(0o777)))
	create(f.dir, "deep", "far inside")
	f.guard = guard.New(guard.Options{Write: write, Owner: []byte(owner), LockHost: []byte(host)})
	f.guard.Above(f.root)
	f.guard.Base(f.base)
	f.sent = f.guard.Requester(f.wire)
	return f
}

func (f *fixture) close() { _ = f.server.Close() }

// appendTree appends all that lies below a directory but base: attributes, handles
// and contents.
func (f *fixture) appendTree(b, dir []byte) []byte {
	c := client.Call{}
	c.Build(client.Procedure{Program: nfs3.NFS_PROGRAM, Version: 3, Number: nfs3.NFSPROC3_READDIRPLUS}, f.cred,
		&nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: dir}, Dircount: 1 << 16, Maxcount: 1 << 16})
	var res nfs3.READDIRPLUS3res
	if err := f.plain.Do(context.Background(), &c, &res); err != nil || res.Status != 0 {
		f.tb.Fatal(err, res.Status)
	}
	for i := range res.Resok.Reply.Entries {
		e := &res.Resok.Reply.Entries[i]
		if string(e.Name) == ".." {
			continue // of the root it is the root
		}
		h := e.NameHandle.Handle.Data
		if string(h) == string(f.base) {
			b = append(b, e.Name...) // that it is there
			continue
		}
		b = append(e.Append(b), '\n')
		switch {
		case string(e.Name) == ".":
		case e.NameAttributes.Attributes.Type == nfs3.NF3DIR:
			b = f.appendTree(b, h)
		case e.NameAttributes.Attributes.Type == nfs3.NF3REG:
			b = f.appendContent(b, h)
		}
	}
	return b
}

func (f *fixture) appendContent(b, h []byte) []byte {
	buf := make([]byte, 256)
	n, _, err := f.plain.Read(context.Background(), &client.File{Handle: h}, 0, buf)
	if err != nil {
		f.tb.Fatal(err)
	}
	return append(b, buf[:n]...)
}

// outside describes what must not change.
func (f *fixture) outside() string { return string(f.appendTree(nil, f.root)) }

// within describes the base: with --write it may change, without it must not.
func (f *fixture) within() string { return string(f.appendBase(nil)) }

func (f *fixture) appendBase(b []byte) []byte {
	base := f.base
	f.base = nil // that of appendTree
	b = f.appendTree(b, base)
	f.base = base
	return b
}

// build encodes a call.
func (f *fixture) build(program, version, procedure uint32, args xdr.Message) *client.Call {
	c := &client.Call{}
	c.Build(client.Procedure{Program: program, Version: version, Number: procedure}, f.cred, args)
	return c
}

func op(n nfs4.NfsOpnum4, m ...xdr.Message) nfs4.Op {
	if len(m) == 0 {
		return nfs4.Op{Number: uint32(n), Body: xdr.Void{}}
	}
	return nfs4.Op{Number: uint32(n), Body: m[0]}
}

func put(h []byte) nfs4.Op { return op(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: h}) }
func lookup(n string) nfs4.Op {
	return op(nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(n)})
}
func remove(n string) nfs4.Op {
	return op(nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte(n)})
}

func compound(minor uint32, list ...nfs4.Op) *nfs4.CompoundArgs {
	c := &nfs4.CompoundArgs{Minorversion: minor}
	c.Ops = list
	return c
}

// v4 encodes a COMPOUND.
func (f *fixture) v4(minor uint32, list ...nfs4.Op) *client.Call {
	return f.build(nfs4.NFS4_PROGRAM, nfs4.NFS_V4, nfs4.NFSPROC4_COMPOUND, compound(minor, list...))
}

func (f *fixture) v3(procedure uint32, args xdr.Message) *client.Call {
	return f.build(nfs3.NFS_PROGRAM, nfs3.NFS_V3, procedure, args)
}

// must sends a call that the guard lets pass and the server takes.
func (f *fixture) must(c *client.Call, res xdr.Message) {
	f.tb.Helper()
	if err := f.sent.Do(context.Background(), &c.Call); err != nil {
		f.tb.Fatal(err)
	}
	if err := c.Decode(res); err != nil {
		f.tb.Fatal(err)
	}
	if s, ok := res.(xdr.Status); ok {
		if code, symbol := s.StatusCode(); code != 0 {
			f.tb.Fatalf("%s", symbol)
		}
	}
}

// reason is the guard's verdict; 0 if the call may go.
func (f *fixture) reason(c *client.Call) guard.Reason {
	err := f.guard.Check(&c.Message)
	if err == nil {
		return 0
	}
	var r *guard.Refused
	if !errors.As(err, &r) {
		f.tb.Fatalf("%v", err)
	}
	return r.Reason
}
