package nfs4

import (
	"bytes"
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// loser is a handler that, while switched on, loses its replies together with their connections.
type loser struct {
	transport.Handler
	lose atomic.Bool
}

func (l *loser) ServeRPC(x transport.Exchange) {
	if l.lose.Load() {
		x = &lostExchange{x}
	}
	l.Handler.ServeRPC(x)
}

type lostExchange struct{ transport.Exchange }

func (x *lostExchange) Reply(m *transport.Message) {
	x.Disconnect()
	x.Drop()
	if m.Release != nil {
		m.Release()
	}
}

// COMPOUNDs of NFSv4.0 whose reply was lost are sent again on a new connection, over
// TCP and over RDMA: with the data of a READ in the same COMPOUND inline, in one chunk,
// and in another one. The owners remember operations with seqids, the reply cache the others.
func TestAgain0(t *testing.T) {
	st := memory.New(memory.Options{})
	srv := New(st, Options{})
	rpc := nfsserver.New(nfsserver.Options{Workers: 2})
	rpc.Register(srv.Program())
	h := &loser{Handler: rpc}
	p := loop.New(loop.Options{})
	lt, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", h, tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lr, err := endpoint.Listen(t.Context(), p, netip.MustParseAddrPort("127.0.0.1:0"), h, endpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lt.Close()
		_ = lr.Close()
		rpc.Close()
		srv.Close()
		_ = p.Close()
		_ = st.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, dial := range map[string]func() (transport.Requester, error){
		"tcp":  func() (transport.Requester, error) { return tcprpc.Dial(ctx, lt.Addr().String(), tcprpc.Options{}) },
		"rdma": func() (transport.Requester, error) { return endpoint.Dial(ctx, p, lr.Addr(), endpoint.Options{}) },
	} {
		a := &again{T: t, ctx: ctx, dial: dial, h: h, name: name}
		a.run()
	}
}

type again struct {
	*testing.T
	ctx  context.Context
	dial func() (transport.Requester, error)
	h    *loser
	name string
	xid  uint32
}

// do sends a COMPOUND, twice if its reply is lost, and returns the result.
func (a *again) do(lost bool, ops ...nfs4.Op) *nfs4.CompoundRes {
	a.Helper()
	a.xid++
	args := nfs4.CompoundArgs{Operations: nfs4.Operations{Ops: ops}}
	attempt := func(room int) (*transport.Call, error) {
		r, err := a.dial()
		if err != nil {
			a.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // it has nothing to say
		c := &transport.Call{MaxReply: 128 << 10, XID: a.xid, Timeout: time.Minute}
		c.Stream = append(header(a.xid, 0), args.Append(nil)...)
		if room > 0 && a.name == "rdma" {
			b, err := r.Alloc(room)
			if err != nil {
				a.Fatal(err)
			}
			c.Results = [][]byte{b}
		}
		err = r.Do(a.ctx, c)
		if err == nil { // the memory goes with r
			c.Reply = transport.Message{Stream: bytes.Clone(c.Reply.Stream), Items: append([]transport.Item(nil), c.Reply.Items...)}
			for i := range c.Reply.Items {
				c.Reply.Items[i].Data = bytes.Clone(c.Reply.Items[i].Data)
			}
		}
		return c, err
	}
	if !lost {
		c, err := attempt(0)
		return a.result(c, err)
	}
	a.h.lose.Store(true)
	_, err := attempt(64 << 10)
	a.h.lose.Store(false)
	if err == nil {
		a.Fatal("the reply was not lost")
	}
	var first *nfs4.CompoundRes
	for _, room := range []int{64 << 10, 0, 100 << 10} {
		c, err := attempt(room)
		res := a.result(c, err)
		if first == nil {
			first = res
		}
		if got, want := res.Append(nil), first.Append(nil); res.Status != first.Status || len(res.Ops) != len(first.Ops) || room == 64<<10 && !bytes.Equal(got, want) {
			a.Errorf("%s: % x after % x", a.name, got, want)
		}
	}
	return first
}

// result decodes a reply and puts data from chunks into its place.
func (a *again) result(c *transport.Call, err error) *nfs4.CompoundRes {
	a.Helper()
	if err != nil {
		a.Fatalf("%s: %v", a.name, err)
	}
	var head oncrpc.Reply
	m := &c.Reply
	if err := head.Decode(m.Stream, len(m.Stream)); err != nil || !head.Succeeded() {
		a.Fatalf("%s: %v %+v", a.name, err, head)
	}
	var r xdr.Reader
	r.Reset(m.Stream[head.Size():], len(m.Stream)-head.Size())
	var reduced []xdr.Reduced
	for _, it := range m.Items {
		reduced = append(reduced, xdr.Reduced{Length: uint32(len(it.Data))})
	}
	r.ReduceReply(reduced)
	res := &nfs4.CompoundRes{}
	if res.Decode(&r); r.Failed() {
		a.Fatalf("%s: %v", a.name, r.Err())
	}
	for i := range res.Ops {
		if rd, fine := res.Ops[i].Body.(*nfs4.READ4res); fine && rd.Resok4.Data.Chunk != 0 {
			rd.Resok4.Data = xdr.Data{Length: rd.Resok4.Data.Length, Inline: bytes.Clone(m.Bytes(rd.Resok4.Data))}
		}
	}
	return res
}

func (a *again) must(res *nfs4.CompoundRes) *nfs4.CompoundRes {
	a.Helper()
	if res.Status != ok {
		a.Fatalf("%s: %s of operation %d", a.name, res.Status, len(res.Ops))
	}
	return res
}

func (a *again) run() {
	a.Helper()
	data := string(bytes.Repeat([]byte(a.name), 50_000))[:60_000]
	id := body[nfs4.SETCLIENTID4res](a, a.must(a.do(true, setclientid(a.name, 1)))).Resok4
	a.must(a.do(true, confirmOp(id)))
	open := openArgs("owner", "file "+a.name, 3, 0, createHow(nfs4.GUARDED4))
	open.Owner.Clientid, open.Seqid = id.Clientid, 7
	res := a.must(a.do(true, putroot, o(nfs4.OP_OPEN, open), getfh))
	fh, sid := body[nfs4.GETFH4res](a, res).Resok4.Object, body[nfs4.OPEN4res](a, res).Resok4.Stateid
	res = a.must(a.do(true, putfh(fh), o(nfs4.OP_OPEN_CONFIRM, &nfs4.OPEN_CONFIRM4args{OpenStateid: sid, Seqid: 8})))
	sid = body[nfs4.OPEN_CONFIRM4res](a, res).Resok4.OpenStateid
	lock := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Length: 10}
	lock.Locker.NewLockOwner = true
	lock.Locker.OpenOwner = nfs4.OpenToLockOwner4{OpenSeqid: 9, OpenStateid: sid, LockSeqid: 3, LockOwner: nfs4.StateOwner4{Clientid: id.Clientid, Owner: []byte("lock")}}
	res = a.must(a.do(true, putfh(fh), o(nfs4.OP_LOCK, lock)))
	locked := body[nfs4.LOCK4res](a, res).Resok4.LockStateid
	a.must(a.do(false, putfh(fh), write(sid, 0, data)))
	a.must(a.do(true, putroot, mkdir("dir "+a.name)))
	// The data of a READ after a non-idempotent operation.
	res = a.must(a.do(true, putroot, savefh, rename("dir "+a.name, "moved "+a.name), putfh(fh), read(sid, 0, 60_000)))
	if got := body[nfs4.READ4res](a, res).Resok4.Data; string(got.Inline) != data {
		a.Errorf("%s: %d bytes of other data", a.name, len(got.Inline))
	}
	a.must(a.do(true, putroot, remove("moved "+a.name), putfh(fh), read(sid, 59_900, 1000)))
	a.must(a.do(true, putfh(fh), savefh, putroot, o(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte("link " + a.name)})))
	unlock := &nfs4.LOCKU4args{Locktype: nfs4.WRITE_LT, Seqid: 4, LockStateid: locked, Length: 10}
	a.must(a.do(true, putfh(fh), o(nfs4.OP_LOCKU, unlock)))
	a.must(a.do(true, putfh(fh), o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{Seqid: 10, OpenStateid: sid})))
}
