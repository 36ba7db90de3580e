package nfs4

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/internal/callback"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// caller is a client on a transport, with the recalls it has received.
type caller struct {
	*testing.T
	ctx     context.Context
	r       transport.Requester
	minor   uint32
	id      uint64
	session *wire
	recalls chan callback.Recall
	seq     uint32
}

func (c *caller) do(ops ...nfs4.Op) *nfs4.CompoundRes {
	c.Helper()
	a := nfs4.CompoundArgs{Minorversion: c.minor}
	if c.session != nil {
		c.session.seq++
		a.Ops = append(a.Ops, sequenceOp(c.session.id, 0, c.session.seq, false))
	}
	a.Ops = append(a.Ops, ops...)
	call := transport.Call{MaxReply: 1 << 16}
	call.Stream = append(header(0, 0), a.Append(nil)...)
	if err := c.r.Do(c.ctx, &call); err != nil {
		c.Fatal(err)
	}
	res := new(nfs4.CompoundRes)
	if err := decodeReply(call.Reply.AppendWhole(nil), res); err != nil {
		c.Fatal(err)
	}
	return res
}

func (c *caller) must(res *nfs4.CompoundRes) *nfs4.CompoundRes {
	c.Helper()
	if res.Status != ok {
		c.Fatalf("%s of operation %d", res.Status, len(res.Ops))
	}
	return res
}

// start makes a client ID, and a session since NFSv4.1.
func (c *caller) start(name string) {
	c.Helper()
	h := callback.Handler{Recalled: func(l []callback.Recall) {
		for _, r := range l {
			c.recalls <- r
		}
	}}
	if c.minor == 0 {
		l, err := callback.Listen(c.ctx, netip.MustParseAddr("127.0.0.1"), h)
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(func() { _ = l.Close() })
		a := &nfs4.SETCLIENTID4args{CallbackIdent: 5}
		a.Client.Id, a.Callback.CbProgram = []byte(name), 0x40000000
		a.Callback.CbLocation = nfs4.Netaddr4{NaRNetid: []byte("tcp"), NaRAddr: l.Universal()}
		id := body[nfs4.SETCLIENTID4res](c, c.must(c.do(o(nfs4.OP_SETCLIENTID, a)))).Resok4
		c.id = id.Clientid
		c.must(c.do(confirmOp(id)))
		return
	}
	c.r.Serve(h)
	id := body[nfs4.EXCHANGE_ID4res](c, c.must(c.do(exchangeID(name, 1, 0)))).EirResok4
	s := body[nfs4.CREATE_SESSION4res](c, c.must(c.do(createSession(id.EirClientid, id.EirSequenceid)))).CsrResok4
	if s.CsrFlags&nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN == 0 {
		c.Fatal("no backchannel")
	}
	c.session = &wire{id: s.CsrSessionid}
	c.must(c.do(o(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})))
}

// open opens a file of the root. In NFSv4.0 it confirms the owner.
func (c *caller) open(name string, access uint32, how nfs4.Openflag4) (fh []byte, r nfs4.OPEN4resok, st status) {
	c.Helper()
	a := openArgs("owner", name, access, 0, how)
	c.seq++
	a.Owner.Clientid, a.Seqid = c.id, c.seq
	res := c.do(putroot, o(nfs4.OP_OPEN, a), getfh)
	if res.Status != ok {
		return nil, r, res.Status
	}
	fh, r = body[nfs4.GETFH4res](c, res).Resok4.Object, body[nfs4.OPEN4res](c, res).Resok4
	if r.Rflags&nfs4.OPEN4_RESULT_CONFIRM != 0 {
		c.seq++
		c.must(c.do(putfh(fh), o(nfs4.OP_OPEN_CONFIRM, &nfs4.OPEN_CONFIRM4args{OpenStateid: r.Stateid, Seqid: c.seq})))
	}
	return fh, r, ok
}

// Callbacks arrive over TCP and RDMA, on the client's connection and, in NFSv4.0, on one
// of the server's own.
func TestCallbacks(t *testing.T) {
	st := memory.New(memory.Options{})
	srv := New(st, Options{Dial: func(ctx context.Context, at netip.AddrPort, maxReply int, timeout time.Duration) (transport.Requester, error) {
		return tcprpc.Dial(ctx, at.String(), tcprpc.Options{MaxRecord: maxReply, Timeout: timeout})
	}})
	rpc := nfsserver.New(nfsserver.Options{Workers: 2})
	rpc.Register(srv.Program())
	p := loop.New(loop.Options{})
	lt, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", rpc, tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lr, err := endpoint.Listen(t.Context(), p, netip.MustParseAddrPort("127.0.0.1:0"), rpc, endpoint.Options{})
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
	for name, v := range map[string]struct {
		minor uint32
		dial  func() (transport.Requester, error)
	}{
		"tcp 4.0": {0, func() (transport.Requester, error) {
			return tcprpc.Dial(t.Context(), lt.Addr().String(), tcprpc.Options{})
		}},
		"tcp 4.1": {1, func() (transport.Requester, error) {
			return tcprpc.Dial(t.Context(), lt.Addr().String(), tcprpc.Options{})
		}},
		"rdma 4.2": {2, func() (transport.Requester, error) {
			return endpoint.Dial(t.Context(), p, lr.Addr(), endpoint.Options{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			client := func(who string) *caller {
				r, err := v.dial()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = r.Close() })
				c := &caller{T: t, ctx: ctx, r: r, minor: v.minor, recalls: make(chan callback.Recall, 100)}
				c.start(name + who)
				return c
			}
			a, b := client("a"), client("b")
			for i := 0; ; i++ {
				fh, r, st := a.open(name, forRead, createHow(nfs4.UNCHECKED4))
				if st != ok || i > 6000 {
					t.Fatal(st, i)
				}
				if r.Delegation.DelegationType == nfs4.OPEN_DELEGATE_NONE {
					time.Sleep(10 * time.Millisecond) // the callback path is not tested yet
					continue
				}
				id := r.Delegation.Read.Stateid
				if _, _, st := b.open(name, forWrite, nfs4.Openflag4{}); st != nfs4.NFS4ERR_DELAY {
					t.Fatal(st)
				}
				got := <-a.recalls
				if got.Stateid != id || string(got.Handle) != string(fh) {
					t.Errorf("recalled %v %x, want %v %x", got.Stateid, got.Handle, id, fh)
				}
				a.must(a.do(putfh(fh), delegreturn(id)))
				if _, _, st := b.open(name, forWrite, nfs4.Openflag4{}); st != ok {
					t.Error(st)
				}
				// The holder of a write delegation asks for attributes, as Linux does
				// when it returns it: that is no conflict, although in NFSv4.0
				// nothing in the COMPOUND says who asks.
				fh, r, st = a.open(name+" written", forBoth, createHow(nfs4.UNCHECKED4))
				if st != ok || r.Delegation.DelegationType != nfs4.OPEN_DELEGATE_WRITE {
					t.Fatal(st, r.Delegation.DelegationType)
				}
				size := getattr(nfs4.FATTR4_SIZE)
				a.must(a.do(putfh(fh), size))
				if res := b.do(putfh(fh), size); res.Status != nfs4.NFS4ERR_DELAY {
					t.Errorf("another client: %s", res.Status) // no answer to CB_GETATTR
				}
				a.must(a.do(putfh(fh), size, delegreturn(r.Delegation.Write.Stateid)))
				b.must(b.do(putfh(fh), size))
				return
			}
		})
	}
}
