package nfs4

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

// rig is a server with a store in memory, called without a transport.
type rig struct {
	testing.TB
	clock *clock
	store store.Store
	s     *Server
	rpc   *nfsserver.Server
	xid   uint32
	from  netip.AddrPort // of the calls
	back  *answering     // callbacks go there; nil: nowhere
}

func newRig(t testing.TB, opt Options) *rig {
	t.Helper()
	r := &rig{TB: t, clock: &clock{now: time.Unix(1e9, 0)}, from: netip.MustParseAddrPort("192.0.2.1:700")}
	r.store = memory.New(memory.Options{})
	r.boot(opt)
	t.Cleanup(func() {
		r.shut()
		_ = r.store.Close()
	})
	return r
}

// boot starts a server of the store.
func (r *rig) boot(opt Options) {
	opt.Now, opt.NoReaper = r.clock.Now, true
	r.s = New(r.store, opt)
	r.rpc = nfsserver.New(nfsserver.Options{})
	r.rpc.Register(r.s.Program())
}

func (r *rig) shut() {
	r.s.Close()
	if n := r.s.State(); n != (state.Counts{}) {
		r.Errorf("left after Close: %+v", n)
	}
	r.rpc.Close()
}

// exchange is a call without a transport.
type exchange struct {
	call   transport.Message
	from   netip.AddrPort
	back   *answering
	max    []uint32 // chunks
	reply  []byte   // whole
	items  int
	length int // of the stream
	done   bool
	// finished, if set, is closed by the reply.
	finished chan struct{}
}

func (x *exchange) Call() *transport.Message { return &x.call }
func (x *exchange) Peer() transport.Peer {
	return transport.Peer{Transport: "test", ID: 1, Remote: x.from}
}

func (x *exchange) MaxResult(n int) uint32 {
	if n < len(x.max) {
		return x.max[n]
	}
	return 0
}

func (x *exchange) Reply(m *transport.Message) {
	x.reply = m.AppendWhole(x.reply[:0])
	x.items, x.length, x.done = len(m.Items), len(m.Stream), true
	if m.Release != nil {
		m.Release()
	}
	if x.finished != nil {
		close(x.finished)
	}
}
func (x *exchange) Drop()       { x.done = true }
func (x *exchange) Disconnect() {}
func (x *exchange) Backward() transport.Requester {
	if x.back == nil {
		return nil
	}
	return x.back
}
func (x *exchange) OnClose(any, func()) {}

func header(xid, uid uint32) []byte {
	sys := oncrpc.Sys{Machine: []byte("client"), UID: uid, GID: uid}
	h := oncrpc.Call{XID: xid, RPCVersion: 2, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1,
		Cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}}
	return h.Append(nil)
}

// settle waits until it is known for all clients whether callbacks reach them.
func (r *rig) settle() {
	r.Helper()
	for range 60000 {
		if r.s.back.Idle() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.Fatal("a callback does not end")
}

// answering is a client that answers callbacks. A nil answer means success.
type answering struct {
	transport.Requester // nil
	mu                  sync.Mutex
	calls               []nfs4.CbCompoundArgs
	answer              func(op nfs4.Op) nfs4.Op
	err                 error
}

func (a *answering) Do(_ context.Context, c *transport.Call) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	var h oncrpc.Call
	if err := h.Decode(c.Stream, len(c.Stream)); err != nil {
		return err
	}
	reply := (&oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}).Append(nil)
	if h.Procedure == 0 {
		c.Reply = transport.Message{Stream: reply}
		return nil
	}
	var r xdr.Reader
	r.Reset(c.Stream[h.Size():], len(c.Stream)-h.Size())
	var args nfs4.CbCompoundArgs
	if args.Decode(&r); r.Failed() {
		return r.Err()
	}
	a.calls = append(a.calls, args)
	res := nfs4.CbCompoundRes{}
	for _, op := range args.Ops {
		out := nfs4.Op{Number: op.Number, Body: &nfs4.Status4res{}}
		if s, isSeq := op.Body.(*nfs4.CB_SEQUENCE4args); isSeq {
			out.Body = &nfs4.CB_SEQUENCE4res{CsrResok4: nfs4.CB_SEQUENCE4resok{CsrSessionid: s.CsaSessionid, CsrSequenceid: s.CsaSequenceid}}
		} else if a.answer != nil {
			out = a.answer(op)
		}
		res.Ops = append(res.Ops, out)
		if st, _, _ := out.Status(); st != 0 {
			res.Status = nfs4.Nfsstat4(st)
			break
		}
	}
	c.Reply = transport.Message{Stream: res.Append(reply)}
	return nil
}

// recalls are the stateids of the CB_RECALLs so far.
func (a *answering) recalls() (ids []nfs4.Stateid4) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		for _, op := range c.Ops {
			if r, isRecall := op.Body.(*nfs4.CB_RECALL4args); isRecall {
				ids = append(ids, r.Stateid)
			}
		}
	}
	return ids
}

// raw sends a COMPOUND unchanged.
func (r *rig) raw(uid uint32, args []byte, max ...uint32) *exchange {
	r.Helper()
	r.xid++
	x := &exchange{max: max, from: r.from, back: r.back}
	x.call.Stream = append(header(r.xid, uid), args...)
	r.rpc.ServeRPC(x)
	if !x.done {
		r.Fatal("no reply")
	}
	return x
}

// result decodes a reply.
func (r *rig) result(x *exchange) *nfs4.CompoundRes {
	r.Helper()
	res := new(nfs4.CompoundRes)
	if err := decodeReply(x.reply, res); err != nil {
		r.Fatalf("reply % x: %v", x.reply, err)
	}
	return res
}

type replyError string

func (e replyError) Error() string { return string(e) }

func decodeReply(b []byte, res *nfs4.CompoundRes) error {
	var h oncrpc.Reply
	if err := h.Decode(b, len(b)); err != nil {
		return err
	}
	if !h.Succeeded() {
		return replyError(h.Status())
	}
	body := h.Body(oncrpc.Protection{})
	var rd xdr.Reader
	rd.Reset(body.Data, len(body.Data))
	res.Decode(&rd)
	if rd.Failed() {
		return rd.Err()
	}
	if rd.Remaining() != 0 {
		return replyError("bytes after the result")
	}
	return nil
}

// do sends a COMPOUND.
func (r *rig) do(uid, minor uint32, ops ...nfs4.Op) *nfs4.CompoundRes {
	r.Helper()
	a := nfs4.CompoundArgs{Tag: []byte("tag"), Minorversion: minor}
	a.Ops = ops
	res := r.result(r.raw(uid, a.Append(nil)))
	if string(res.Tag) != "tag" {
		r.Fatalf("tag %q", res.Tag)
	}
	return res
}

// must is do with the expected statuses of the operations; the others must be NFS4_OK.
func (r *rig) must(want status, res *nfs4.CompoundRes) *nfs4.CompoundRes {
	r.Helper()
	if res.Status != want {
		op := "no operation"
		if n := len(res.Ops); n > 0 {
			op = nfs4.OpName(res.Ops[n-1].Number)
		}
		r.Fatalf("%s: %s, want %s", op, res.Status, want)
	}
	return res
}

func o(number nfs4.NfsOpnum4, body xdr.Message) nfs4.Op {
	return nfs4.Op{Number: uint32(number), Body: body}
}

var (
	putroot = o(nfs4.OP_PUTROOTFH, nil)
	getfh   = o(nfs4.OP_GETFH, nil)
	savefh  = o(nfs4.OP_SAVEFH, nil)
	restore = o(nfs4.OP_RESTOREFH, nil)
)

func putfh(h []byte) nfs4.Op { return o(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: h}) }
func lookup(n string) nfs4.Op {
	return o(nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(n)})
}

func getattr(n ...uint32) nfs4.Op {
	return o(nfs4.OP_GETATTR, &nfs4.GETATTR4args{AttrRequest: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(n...)}})
}

// body is the last result of its type.
func body[T any](r testing.TB, res *nfs4.CompoundRes) *T {
	r.Helper()
	for i := len(res.Ops) - 1; i >= 0; i-- {
		if b, ok := res.Ops[i].Body.(any).(*T); ok {
			return b
		}
	}
	r.Fatalf("no %T in the result", new(T))
	return nil
}

// session is a client since NFSv4.1 with one session.
type session struct {
	*rig
	minor    uint32
	uid      uint32
	clientid uint64
	id       [16]byte
	seqs     map[uint32]uint32
	slot     uint32
	keep     bool
	chunks   []uint32
	last     *exchange
}

func exchangeID(name string, verifier byte, flags uint32) nfs4.Op {
	a := &nfs4.EXCHANGE_ID4args{EiaFlags: flags}
	a.EiaClientowner.CoOwnerid = []byte(name)
	a.EiaClientowner.CoVerifier[7] = verifier
	return o(nfs4.OP_EXCHANGE_ID, a)
}

func createSession(id uint64, seq uint32) nfs4.Op {
	attrs := nfs4.ChannelAttrs4{CaMaxrequestsize: 1 << 21, CaMaxresponsesize: 1 << 21, CaMaxresponsesizeCached: 4096, CaMaxoperations: 16, CaMaxrequests: 32}
	return o(nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{CsaClientid: id, CsaSequence: seq,
		CsaFlags: nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN, CsaSecParms: []nfs4.CallbackSecParms4{{}}, CsaForeChanAttrs: attrs, CsaBackChanAttrs: attrs})
}

// mount makes a client with a session that is ready for use.
func (r *rig) mount(name string, minor, uid uint32) *session {
	r.Helper()
	s := &session{rig: r, minor: minor, uid: uid, seqs: map[uint32]uint32{}}
	id := body[nfs4.EXCHANGE_ID4res](r, r.must(ok, r.do(uid, minor, exchangeID(name, 1, 0)))).EirResok4
	s.clientid = id.EirClientid
	cs := body[nfs4.CREATE_SESSION4res](r, r.must(ok, r.do(uid, minor, createSession(id.EirClientid, id.EirSequenceid)))).CsrResok4
	s.id = cs.CsrSessionid
	s.must(ok, s.do(o(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})))
	return s
}

func (s *session) sequence() nfs4.Op {
	s.seqs[s.slot]++
	return o(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: s.id, SaSequenceid: s.seqs[s.slot], SaSlotid: s.slot, SaHighestSlotid: s.slot, SaCachethis: s.keep})
}

func (s *session) encode(ops ...nfs4.Op) []byte {
	a := nfs4.CompoundArgs{Minorversion: s.minor}
	a.Ops = append([]nfs4.Op{s.sequence()}, ops...)
	return a.Append(nil)
}

// do sends a COMPOUND in the session.
func (s *session) do(ops ...nfs4.Op) *nfs4.CompoundRes {
	s.Helper()
	s.last = s.raw(s.uid, s.encode(ops...), s.chunks...)
	return s.result(s.last)
}

func attrs(set func(a *nfs4.Attrs)) nfs4.Fattr4 {
	var a nfs4.Attrs
	set(&a)
	return a.Fattr4()
}

func mode(m uint32) nfs4.Fattr4 {
	return attrs(func(a *nfs4.Attrs) { a.Mask, a.Mode = nfs4.NewBitmap4(nfs4.FATTR4_MODE), m })
}

func openArgs(owner, name string, access, deny uint32, how nfs4.Openflag4) *nfs4.OPEN4args {
	a := &nfs4.OPEN4args{ShareAccess: nfs4.ShareAccess4(access), ShareDeny: deny, Openhow: how}
	a.Owner.Owner = []byte(owner)
	a.Claim.File = []byte(name)
	return a
}

func createHow(m nfs4.Createmode4) nfs4.Openflag4 {
	h := nfs4.Openflag4{Opentype: nfs4.OPEN4_CREATE}
	h.How.Mode = m
	h.How.Createattrs = mode(0o644)
	return h
}

// create opens a new file in the root.
func (s *session) create(owner, name string, access, deny uint32) (h []byte, sid nfs4.Stateid4) {
	s.Helper()
	res := s.must(ok, s.do(putroot, o(nfs4.OP_OPEN, openArgs(owner, name, access, deny, createHow(nfs4.UNCHECKED4))), getfh))
	return body[nfs4.GETFH4res](s, res).Resok4.Object, body[nfs4.OPEN4res](s, res).Resok4.Stateid
}

func read(sid nfs4.Stateid4, offset uint64, n uint32) nfs4.Op {
	return o(nfs4.OP_READ, &nfs4.READ4args{Stateid: sid, Offset: offset, Count: n})
}

func write(sid nfs4.Stateid4, offset uint64, data string) nfs4.Op {
	return o(nfs4.OP_WRITE, &nfs4.WRITE4args{Stateid: sid, Offset: offset, Stable: nfs4.FILE_SYNC4, Data: xdr.Data{Length: uint32(len(data)), Inline: []byte(data)}})
}

func closeOp(sid nfs4.Stateid4) nfs4.Op {
	return o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: sid})
}
