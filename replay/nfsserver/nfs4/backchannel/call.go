package backchannel

import (
	"context"
	"errors"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Params are the parameters of a session's callbacks.
type Params struct {
	Program uint32
	Cred    oncrpc.Auth
	// Request is the largest call that the client takes, in bytes; 0 is any.
	Request uint32
}

// Security picks the first credential of a client's list that can be used. ok is false
// if there is none.
func Security(list []nfs4.CallbackSecParms4) (cred oncrpc.Auth, ok bool) {
	for i := range list {
		switch s := &list[i]; s.CbSecflavor {
		case nfs4.AUTH_NONE:
			return oncrpc.Auth{}, true
		case nfs4.AUTH_SYS:
			p := &s.CbspSysCred
			sys := oncrpc.Sys{Stamp: p.Stamp, Machine: p.Machinename, UID: p.Uid, GID: p.Gid}
			if len(p.Machinename) > 255 || len(p.Gids) > len(sys.GIDs) {
				continue
			}
			sys.Count = copy(sys.GIDs[:], p.Gids)
			return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}, true
		}
	}
	return cred, false
}

// The procedures of the callback program (RFC 8881, section 20).
const (
	cbVersion    = 1
	procNull     = 0
	procCompound = 1
)

// MaxReply is the largest reply that a client may send, in bytes.
const MaxReply = 4096

// attempt sends a callback once. The error comes from the path to the client, not from the
// client.
func (c *Channel) attempt(r *request) (*nfs4.CbCompoundRes, error) {
	c.mu.Lock()
	s, to := c.path()
	t := c.target
	c.mu.Unlock()
	switch {
	case s != nil && r.op.Body == nil:
		return c.call(to, s.params, procNull, nil)
	case s != nil:
		return c.inSession(s, to, r)
	case t == nil:
		return nil, ErrNoPath
	}
	to, err := t.connect(c.m.ctx, c.m.opt.Timeout)
	if err != nil {
		return nil, err
	}
	var args *nfs4.CbCompoundArgs
	procedure := uint32(procNull)
	if r.op.Body != nil {
		args, procedure = &nfs4.CbCompoundArgs{CallbackIdent: t.ident}, procCompound
		args.Ops = []nfs4.Op{r.op}
	}
	res, err := c.call(to, t.params, procedure, args)
	if err != nil {
		t.disconnect(to)
	}
	return res, err
}

// inSession sends a callback in slot 0 of a session. Only Channel.run does, one at a
// time. A call without a reply may or may not have been executed: the client's answer to the next
// one shows it (RFC 8881, section 2.10.6.1).
func (c *Channel) inSession(s *session, to transport.Requester, r *request) (*nfs4.CbCompoundRes, error) {
	for range 3 {
		seq := &nfs4.CB_SEQUENCE4args{CsaSessionid: s.id, CsaSequenceid: s.seq + 1}
		args := &nfs4.CbCompoundArgs{Minorversion: c.minor}
		args.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_CB_SEQUENCE), Body: seq}, r.op}
		c.mu.Lock()
		params := s.params
		c.mu.Unlock()
		res, err := c.call(to, params, procCompound, args)
		if err != nil {
			return nil, err
		}
		if len(res.Ops) == 0 {
			return nil, ErrReply
		}
		got, ok := res.Ops[0].Body.(*nfs4.CB_SEQUENCE4res)
		if !ok {
			return nil, ErrReply
		}
		switch got.CsrStatus {
		case nfs4.NFS4_OK:
			s.seq++
			if len(res.Ops) < 2 {
				return nil, ErrReply
			}
			if res.Ops[1].Number != r.op.Number {
				continue // the reply to an earlier call
			}
			return res, nil
		case nfs4.NFS4ERR_RETRY_UNCACHED_REP, nfs4.NFS4ERR_SEQ_FALSE_RETRY:
			s.seq++
		case nfs4.NFS4ERR_SEQ_MISORDERED:
			if s.seq == 0 {
				return nil, ErrReply
			}
			s.seq = 0
		case nfs4.NFS4ERR_DELAY:
			return res, nil
		default:
			return nil, ErrReply
		}
	}
	return nil, ErrReply
}

// call makes an RPC.
func (c *Channel) call(to transport.Requester, p Params, procedure uint32, args *nfs4.CbCompoundArgs) (*nfs4.CbCompoundRes, error) {
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: p.Program, Version: cbVersion, Procedure: procedure, Cred: p.Cred}
	call := &transport.Call{MaxReply: MaxReply, Timeout: c.m.opt.Timeout}
	call.Stream = h.Append(nil)
	if args != nil {
		call.Stream = args.Append(call.Stream)
	}
	if p.Request != 0 && len(call.Stream) > int(p.Request) {
		return nil, transport.ErrTooLong
	}
	ctx, cancel := context.WithTimeout(c.m.ctx, c.m.opt.Timeout)
	defer cancel()
	if err := to.Do(ctx, call); err != nil {
		return nil, err
	}
	m := &call.Reply
	if len(m.Items) > 0 || len(m.Stream) > MaxReply {
		return nil, ErrReply
	}
	var head oncrpc.Reply
	if err := head.Decode(m.Stream, len(m.Stream)); err != nil {
		return nil, err
	}
	if !head.Succeeded() {
		return nil, errors.New("backchannel: " + head.Status())
	}
	if args == nil {
		return &nfs4.CbCompoundRes{}, nil
	}
	var r xdr.Reader
	body := m.Stream[head.Size():]
	r.Reset(body, len(body))
	res := &nfs4.CbCompoundRes{}
	if res.Decode(&r); r.Failed() {
		return nil, r.Err()
	}
	return res, nil
}
