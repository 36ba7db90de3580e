package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// V4 is an FS of version 4.0, 4.1 or 4.2: one client, and from 4.1 on one
// session.
type V4 struct {
	RPC
	Minor    uint32
	ClientID uint64

	session *session // nil in 4.0
	owner   owner    // 4.0: OPEN, CLOSE … of one owner come one after the other
	ownerID []byte
	calls   sync.Pool
}

var _ FS = (*V4)(nil)

// openState is the server's state of an open file.
type openState struct{ stateid nfs4.Stateid4 }

// owner is the open-owner of NFSv4.0 (RFC 7530, section 9.1.7).
type owner struct {
	sync.Mutex
	seqid uint32
}

// V4Options configures NewV4. Zero fields take the defaults.
type V4Options struct {
	Minor uint32
	// Owner names the client to the server. No other client may have the same.
	Owner []byte
	// Slots is how many calls may be under way (64); the server may allow less.
	Slots uint32
	// MaxSize is the largest call and reply in bytes (1 MiB and 64 KiB more).
	MaxSize uint32
}

// NewV4 makes the client known to the server, and a session from 4.1 on.
func NewV4(ctx context.Context, r RPC, o V4Options) (*V4, error) {
	if o.Minor > 2 {
		return nil, fmt.Errorf("NFSv4.%d is not known", o.Minor)
	}
	if o.Slots == 0 {
		o.Slots = 64
	}
	if o.MaxSize == 0 {
		o.MaxSize = 1<<20 + 64<<10
	}
	v := &V4{RPC: r, Minor: o.Minor, ownerID: clone(o.Owner)}
	if o.Minor == 0 {
		return v, v.speaks(v.setClientID(ctx))
	}
	return v, v.speaks(v.createSession(ctx, o))
}

// speaks explains an error of the first calls that means that the server does not serve this version.
func (v *V4) speaks(err error) error {
	var denied *DeniedError
	var status *StatusError
	var malformed *xdr.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &malformed): // some servers answer calls of other versions as if they were their own
		return fmt.Errorf("the server does not serve NFSv4: it does not answer a COMPOUND with one (%w)", err)
	case errors.As(err, &denied) && denied.Status == oncrpc.ProgMismatch.String(), errors.As(err, &denied) && denied.Status == oncrpc.ProgUnavail.String():
		return fmt.Errorf("the server does not serve NFSv4: %w", err)
	case errors.As(err, &status) && nfs4.Nfsstat4(status.Code) == nfs4.NFS4ERR_MINOR_VERS_MISMATCH:
		return fmt.Errorf("the server does not serve NFSv%s: %w", v.Version(), err)
	}
	return err
}

// Version implements FS.
func (v *V4) Version() string { return fmt.Sprintf("4.%d", v.Minor) }

// Alloc implements FS.
func (v *V4) Alloc(n int) ([]byte, error) { return v.Requester.Alloc(n) }

// Free implements FS.
func (v *V4) Free(b []byte) { v.Requester.Free(b) }

// compound is a COMPOUND under way.
type compound struct {
	Call
	args nfs4.CompoundArgs
	res  nfs4.CompoundRes
}

func (v *V4) get() *compound {
	c, ok := v.calls.Get().(*compound)
	if !ok {
		c = new(compound)
	}
	c.args.Ops = c.args.Ops[:0]
	c.MaxReply = 0
	return c
}

func (v *V4) put(c *compound) {
	c.Results, c.Done = nil, nil
	v.calls.Put(c)
}

// add appends an operation.
func (c *compound) add(number nfs4.NfsOpnum4, body xdr.Message) *compound {
	c.args.Ops = append(c.args.Ops, nfs4.Op{Number: uint32(number), Body: body})
	return c
}

func (c *compound) putfh(handle []byte) *compound {
	if handle == nil {
		return c.add(nfs4.OP_PUTROOTFH, xdr.Void{})
	}
	return c.add(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: handle})
}

// result is the body of operation i of the reply.
func (c *compound) result(i int) xdr.Message {
	if i < 0 {
		i += len(c.res.Ops)
	}
	if i < 0 || i >= len(c.res.Ops) {
		return nil
	}
	return c.res.Ops[i].Body
}

// send makes one call as it is. The error is a *StatusError if an operation
// failed.
func (v *V4) send(ctx context.Context, c *compound, data ...[]byte) error {
	if c.MaxReply == 0 {
		c.MaxReply = 2048 // all but READDIR, READLINK and the like
	}
	c.args.Minorversion = v.Minor
	c.Build(Procedure{nfs4.NFS4_PROGRAM, nfs4.NFS_V4, nfs4.NFSPROC4_COMPOUND}, v.Cred, &c.args, data...)
	if err := v.Do(ctx, &c.Call, &c.res); err != nil {
		return err
	}
	for i := range c.res.Ops {
		if i >= len(c.args.Ops) || c.res.Ops[i].Number != c.args.Ops[i].Number {
			return fmt.Errorf("COMPOUND: operation %d of the reply is %s, which was not asked for", i, nfs4.OpName(c.res.Ops[i].Number))
		}
		if code, symbol, ok := c.res.Ops[i].Status(); ok && code != 0 {
			return &StatusError{nfs4.OpName(c.res.Ops[i].Number), code, symbol}
		}
	}
	if c.res.Status != nfs4.NFS4_OK {
		return &StatusError{"COMPOUND", uint32(c.res.Status), c.res.Status.Symbol()}
	}
	if len(c.res.Ops) != len(c.args.Ops) {
		return fmt.Errorf("COMPOUND: %d results of %d operations", len(c.res.Ops), len(c.args.Ops))
	}
	return nil
}

// retries is how often a call is repeated that the server defers (NFS4ERR_DELAY,
// NFS4ERR_GRACE).
const retries = 60

// ErrPutOff says that a server has deferred a call for as long as a V4 repeats it.
var ErrPutOff = errors.New("it was put off for two minutes")

// do makes one call, in a slot of the session if there is one, and repeats it while the
// server defers it.
func (v *V4) do(ctx context.Context, c *compound, data ...[]byte) error {
	wait := 10 * time.Millisecond
	for i := 0; ; i++ {
		err := v.once(ctx, c, data)
		if !IsStatus(err, uint32(nfs4.NFS4ERR_DELAY)) && !IsStatus(err, uint32(nfs4.NFS4ERR_GRACE)) {
			return err
		}
		if i == retries {
			return fmt.Errorf("%w: %w", err, ErrPutOff)
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		wait = min(2*wait, 2*time.Second)
	}
}

func (v *V4) once(ctx context.Context, c *compound, data [][]byte) error {
	if v.session == nil {
		return v.send(ctx, c, data...)
	}
	s := v.session
	slot, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	if len(c.args.Ops) == 0 || c.args.Ops[0].Number != uint32(nfs4.OP_SEQUENCE) {
		c.args.Ops = append(c.args.Ops, nfs4.Op{})
		copy(c.args.Ops[1:], c.args.Ops)
		c.args.Ops[0] = nfs4.Op{Number: uint32(nfs4.OP_SEQUENCE), Body: new(nfs4.SEQUENCE4args)}
	}
	seq := c.args.Ops[0].Body.(*nfs4.SEQUENCE4args)
	*seq = nfs4.SEQUENCE4args{SaSessionid: s.id, SaSequenceid: slot.next, SaSlotid: slot.number, SaHighestSlotid: s.highest}
	err = v.send(ctx, c, data...)
	// The slot's sequence number advances if the server has executed SEQUENCE. If that is
	// unknown, the slot is not used again.
	executed := false
	if r, ok := c.result(0).(*nfs4.SEQUENCE4res); ok && (err == nil || errors.As(err, new(*StatusError))) {
		executed = true
		if r.SrStatus == nfs4.NFS4_OK {
			slot.next++
		}
	}
	s.release(slot, executed)
	return err
}

// session is a session of NFSv4.1: each slot serves one call at a time.
type session struct {
	id      [16]byte
	highest uint32
	free    chan *slot
	lost    chan struct{} // closed when no slot is left
	mu      sync.Mutex
	left    int
}

type slot struct{ number, next uint32 }

func newSession(id [16]byte, slots uint32) *session {
	s := &session{id: id, highest: slots - 1, free: make(chan *slot, slots), lost: make(chan struct{}), left: int(slots)}
	for i := range slots {
		s.free <- &slot{i, 1}
	}
	return s
}

var errNoSlots = errors.New("no slot of the session is left whose state is known")

func (s *session) acquire(ctx context.Context) (*slot, error) {
	select {
	case sl := <-s.free:
		return sl, nil
	case <-s.lost:
		return nil, errNoSlots
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *session) release(sl *slot, ok bool) {
	if ok {
		s.free <- sl
		return
	}
	s.mu.Lock()
	if s.left--; s.left == 0 {
		close(s.lost)
	}
	s.mu.Unlock()
}

func (v *V4) createSession(ctx context.Context, o V4Options) error {
	c := v.get()
	defer v.put(c)
	x := &nfs4.EXCHANGE_ID4args{EiaFlags: nfs4.EXCHGID4_FLAG_USE_NON_PNFS}
	x.EiaClientowner = nfs4.ClientOwner4{CoVerifier: verifier(), CoOwnerid: v.ownerID}
	if err := v.send(ctx, c.add(nfs4.OP_EXCHANGE_ID, x)); err != nil {
		return err
	}
	res := &c.result(0).(*nfs4.EXCHANGE_ID4res).EirResok4
	v.ClientID = res.EirClientid
	cs := &nfs4.CREATE_SESSION4args{CsaClientid: v.ClientID, CsaSequence: res.EirSequenceid, CsaCbProgram: 0x40000000,
		CsaSecParms: []nfs4.CallbackSecParms4{{CbSecflavor: nfs4.AUTH_NONE}}}
	cs.CsaForeChanAttrs = nfs4.ChannelAttrs4{CaMaxrequestsize: o.MaxSize, CaMaxresponsesize: o.MaxSize, CaMaxresponsesizeCached: 4096, CaMaxoperations: 16, CaMaxrequests: o.Slots}
	cs.CsaBackChanAttrs = nfs4.ChannelAttrs4{CaMaxrequestsize: 4096, CaMaxresponsesize: 4096, CaMaxoperations: 2, CaMaxrequests: 1}
	c.args.Ops = c.args.Ops[:0]
	if err := v.send(ctx, c.add(nfs4.OP_CREATE_SESSION, cs)); err != nil {
		return err
	}
	sr := &c.result(0).(*nfs4.CREATE_SESSION4res).CsrResok4
	v.session = newSession(sr.CsrSessionid, max(1, min(sr.CsrForeChanAttrs.CaMaxrequests, o.Slots)))
	c.args.Ops = c.args.Ops[:0]
	err := v.do(ctx, c.add(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{}))
	if IsStatus(err, uint32(nfs4.NFS4ERR_COMPLETE_ALREADY)) {
		err = nil
	}
	return err
}

// verifier tells this start of the client from an earlier one.
func verifier() (b [8]byte) {
	t := uint64(time.Now().UnixNano())
	for i := range b {
		b[i] = byte(t >> (56 - 8*i))
	}
	return b
}

func (v *V4) setClientID(ctx context.Context) error {
	c := v.get()
	defer v.put(c)
	a := &nfs4.SETCLIENTID4args{Client: nfs4.NfsClientId4{Verifier: verifier(), Id: v.ownerID}}
	// No address for callbacks: the server then gives no delegations.
	a.Callback = nfs4.CbClient4{CbProgram: 0x40000000, CbLocation: nfs4.Netaddr4{NaRNetid: []byte("tcp"), NaRAddr: []byte("0.0.0.0.0.0")}}
	if err := v.send(ctx, c.add(nfs4.OP_SETCLIENTID, a)); err != nil {
		return err
	}
	res := c.result(0).(*nfs4.SETCLIENTID4res).Resok4
	v.ClientID = res.Clientid
	c.args.Ops = c.args.Ops[:0]
	return v.send(ctx, c.add(nfs4.OP_SETCLIENTID_CONFIRM, &nfs4.SETCLIENTID_CONFIRM4args{Clientid: res.Clientid, SetclientidConfirm: res.SetclientidConfirm}))
}

// Renew keeps the lease of a 4.0 client; sessions do so with every call.
func (v *V4) Renew(ctx context.Context) error {
	c := v.get()
	defer v.put(c)
	if v.Minor > 0 {
		return v.do(ctx, c)
	}
	return v.send(ctx, c.add(nfs4.OP_RENEW, &nfs4.RENEW4args{Clientid: v.ClientID}))
}

// Shutdown destroys session and client id. NFSv4.0 leaves that to the lease.
func (v *V4) Shutdown(ctx context.Context) error {
	if v.session == nil {
		return nil
	}
	c := v.get()
	defer v.put(c)
	if err := v.send(ctx, c.add(nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: v.session.id})); err != nil {
		return err
	}
	c.args.Ops = c.args.Ops[:0]
	return v.send(ctx, c.add(nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: v.ClientID}))
}

// Root walks from the root file handle.
func (v *V4) Root(ctx context.Context, path string) ([]byte, error) {
	c := v.get()
	defer v.put(c)
	c.putfh(nil)
	for name := range strings.SplitSeq(path, "/") {
		if name != "" {
			c.add(nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(name)})
		}
	}
	return v.handle(ctx, c)
}

// handle makes a call that ends with GETFH.
func (v *V4) handle(ctx context.Context, c *compound) ([]byte, error) {
	if err := v.do(ctx, c.add(nfs4.OP_GETFH, xdr.Void{})); err != nil {
		return nil, err
	}
	return clone(c.result(-1).(*nfs4.GETFH4res).Resok4.Object), nil
}
