package nfs4

import (
	"encoding/binary"
	"errors"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// replyHeader is the size in bytes of the RPC header of a reply, which counts towards the limits
// of a session: XID to accept_stat, with a verifier of AUTH_NONE.
const replyHeader = 24

// compound is a COMPOUND being executed. It is reused for others.
type compound struct {
	s     *Server
	c     *nfsserver.Call
	args  nfs4.CompoundArgs
	minor uint32
	index int // of the operation
	files guard

	counter int           // position of the number of operations in Out
	next    int           // the operation to continue with
	ask     state.Written // what to ask for before it
	asked   int           // the operation that was asked for
	answer  answer

	place  state.Place
	placed bool // a SEQUENCE was answered
	// retried: the COMPOUND was sent again and its reply is no longer known.
	retried bool
	client  *state.Client // of the session, nil in NFSv4.0

	fh, saved       store.Handle
	hasFH, hasSaved bool
	// attr are the attributes of fh as of the previous operation, if attrAt is its index.
	attr   store.Attr
	attrAt int

	// The current stateid and the saved one (RFC 8881, section 16.2.3.1.2).
	sid, savedSid       nfs4.Stateid4
	hasSid, hasSavedSid bool

	turn  state.Turn // of the owner whose seqid the operation carries
	moved bool       // the operation has changed the current filehandle
	whole bool       // the result is complete, its status included
	tail  bool       // the result has more than a status although it is an error

	start  int              // of the results in Out
	limit  int              // of the results in bytes, items included
	beyond status           // the status for more than limit
	items  []transport.Item // separate items with their positions in the results; to keep them

	attrs  nfs4.Attrs
	set    store.SetAttr
	wcc    store.Wcc
	wcc2   store.Wcc
	list   store.DirList
	buf    []byte
	stat   store.Statfs
	statOK bool
	copied uint64 // bytes, by COPY
}

func (x *compound) reset(c *nfsserver.Call) {
	x.c, x.index = c, 0
	x.files = guard{Store: x.s.store, table: x.s.table}
	x.next, x.asked = 0, -1
	x.placed, x.retried, x.client = false, false, nil
	x.hasFH, x.hasSaved, x.attrAt = false, false, -2
	x.hasSid, x.hasSavedSid = false, false
	x.statOK, x.copied = false, 0
	clear(x.items)
	x.items = x.items[:0]
}

// maxTag is the longest tag in bytes, since replies repeat it.
const maxTag = 1024

// serve answers a COMPOUND.
func (x *compound) serve(c *nfsserver.Call) {
	x.reset(c)
	peek := c.Args
	tag := peek.Opaque(maxTag)
	minor, count := peek.Uint32(), peek.Uint32()
	if peek.Failed() {
		c.Fail(oncrpc.GarbageArgs)
		return
	}
	x.minor = minor
	x.start = len(c.Out)
	x.limit = x.s.table.Limits().Reply - replyHeader
	x.beyond = nfs4.NFS4ERR_REP_TOO_BIG
	if minor == 0 {
		x.beyond = nfs4.NFS4ERR_RESOURCE
	}
	c.Out = xdr.AppendUint32(c.Out, 0)
	c.Out = xdr.AppendOpaque(c.Out, tag)
	x.counter = len(c.Out)
	c.Out = xdr.AppendUint32(c.Out, 0)

	var st status
	switch {
	case !x.s.serves(minor):
		st = nfs4.NFS4ERR_MINOR_VERS_MISMATCH
	case uint64(count) > uint64(x.s.table.Limits().Ops):
		if st = nfs4.NFS4ERR_TOO_MANY_OPS; minor == 0 {
			st = nfs4.NFS4ERR_RESOURCE
		}
	default:
		args := c.Args
		x.args.Decode(&c.Args)
		if minor == 0 && x.mustBeOnce() {
			decoded := c.Args
			c.Args = args
			if !c.Once() {
				return
			}
			c.Args = decoded
		}
		if x.args.Incomplete && !x.named() {
			c.Fail(oncrpc.GarbageArgs)
			return
		}
		x.execute()
		return
	}
	x.send(0, st)
}

// execute runs the COMPOUND from where it has stopped, and sends the reply, unless it stops
// again.
func (x *compound) execute() {
	switch done, st, sent := x.run(); {
	case sent:
	case st == later:
		x.wait()
	default:
		x.send(done, st)
	}
}

// send sends the reply.
func (x *compound) send(done uint32, st status) {
	c := x.c
	binary.BigEndian.PutUint32(c.Out[x.start:], uint32(st))
	binary.BigEndian.PutUint32(c.Out[x.counter:], done)
	x.finish()
	c.Send()
}

func (s *Server) serves(minor uint32) bool {
	switch minor {
	case 0:
		return !s.opt.NoMinor0
	case 1:
		return !s.opt.NoMinor1
	case 2:
		return !s.opt.NoMinor2
	}
	return false
}

// named reports whether the number of the operation that could not be decoded is known, so
// that it can be answered.
func (x *compound) named() bool {
	if x.args.FailedOp != 0 {
		return true
	}
	var e *xdr.Error
	return errors.As(x.c.Args.Err(), &e) && e.Kind == xdr.Value
}

// run executes the operations up to the first error. sent says that the reply has already been
// sent.
func (x *compound) run() (done uint32, st status, sent bool) {
	ops := x.args.Ops
	if x.args.Incomplete && len(ops) > x.args.FailedAt {
		ops = ops[:x.args.FailedAt]
	}
	done = uint32(x.next)
	for i := x.next; i < len(ops); i++ {
		x.index = i
		if st, sent = x.operation(ops[i].Number, ops[i].Body); sent {
			return 0, st, true
		}
		if st == later {
			x.next = i
			return 0, st, false
		}
		done++
		if st != ok {
			return done, st, false
		}
	}
	if x.args.Incomplete {
		x.index = len(ops)
		number := x.args.FailedOp
		st = nfs4.NFS4ERR_BADXDR
		if info := lookupOp(number, x.minor); info == nil {
			number, st = uint32(nfs4.OP_ILLEGAL), nfs4.NFS4ERR_OP_ILLEGAL
		} else if s := x.position(number); s != ok {
			st = s
		}
		x.c.Out = xdr.AppendUint32(x.c.Out, number)
		x.c.Out = appendFailure(x.c.Out, number, st)
		return done + 1, st, false
	}
	return done, ok, false
}

// errorReserve is the room kept in the reply for the result of a failed operation.
const errorReserve = 12

// operation executes one operation and appends its result.
func (x *compound) operation(number uint32, body xdr.Message) (st status, sent bool) {
	c := x.c
	before := c.Len()
	info := lookupOp(number, x.minor)
	if info == nil {
		number = uint32(nfs4.OP_ILLEGAL)
	}
	c.Out = xdr.AppendUint32(c.Out, number)
	mark := len(c.Out)
	c.Out = xdr.AppendUint32(c.Out, 0)
	x.whole, x.tail, x.moved, x.turn = false, false, false, state.Turn{}
	switch {
	case info == nil:
		st = nfs4.NFS4ERR_OP_ILLEGAL
	case number == uint32(nfs4.OP_SEQUENCE):
		if st, sent = x.sequence(body.(*nfs4.SEQUENCE4args)); sent {
			return st, true
		}
	default:
		if st = x.position(number); st != ok {
			break
		}
		switch {
		case info.fh && !x.hasFH:
			st = nfs4.NFS4ERR_NOFILEHANDLE
		case info.saved && !x.hasSaved:
			st = nfs4.NFS4ERR_RESTOREFH
			if number != uint32(nfs4.OP_RESTOREFH) {
				st = nfs4.NFS4ERR_NOFILEHANDLE
			}
		case x.wrongSecurity(number):
			st = nfs4.NFS4ERR_WRONGSEC
		case before+8+info.reserve+errorReserve > x.limit:
			// Refuse before anything is changed.
			st = x.beyond
		default:
			st = info.do(x, body)
		}
	}
	switch {
	case st == later:
		c.Undo(before)
		return st, false
	case x.whole:
	case st == ok && info.reserve == 0 && c.Len() > x.limit:
		st = x.beyond
		fallthrough
	case st != ok && !x.tail:
		c.Undo(before + 4)
		c.Out = appendFailure(c.Out, number, st)
	default:
		binary.BigEndian.PutUint32(c.Out[mark:], uint32(st))
	}
	x.turn.End(st, c.Out[mark:], x.fh, x.moved)
	if n := c.Items(); n > 0 && len(x.items) > n {
		x.items = x.items[:n]
	} else if n == 0 {
		x.items = x.items[:0]
	}
	return st, false
}

// appendFailure appends the result of a failed operation: only a status, except for SETATTR,
// whose result always says which attributes were set.
func appendFailure(b []byte, number uint32, st status) []byte {
	b = xdr.AppendUint32(b, uint32(st))
	if number == uint32(nfs4.OP_SETATTR) {
		b = xdr.AppendUint32(b, 0)
	}
	return b
}

// room is how many bytes the result of the operation may have, so that there is room for an
// error of a later one.
func (x *compound) room() int { return max(x.limit-x.c.Len()-errorReserve, 0) }

// data appends an eligible item to the result.
func (x *compound) data(b []byte) {
	n, at := x.c.Items(), x.c.Len()
	x.c.AddData(b)
	if x.c.Items() > n && x.placed && x.place.Keep {
		x.items = append(x.items, transport.Item{Position: uint32(at + 4), Data: b})
	}
}

// finish keeps the reply in the slot.
func (x *compound) finish() {
	if !x.placed {
		return
	}
	x.placed = false
	results := x.c.Out[x.start:]
	switch {
	case x.c.Items() == 0:
	case x.place.Keep:
		m := transport.Message{Stream: results, Items: x.items}
		results = m.AppendWhole(nil)
	default:
		results = nil
	}
	x.place.End(results)
}

// principal is the user who sent the call, before squashing: root and nobody differ, though
// the server may map root to nobody.
func (x *compound) principal() state.Principal {
	return state.Principal(uint64(x.c.Flavor)<<32 | uint64(x.c.User))
}

// who is the sender of the call and its address.
func (x *compound) who() state.Who {
	return state.Who{Principal: x.principal(), Source: x.c.Peer().Source()}
}

// replay answers a repeated operation with the result of the first one.
func (x *compound) replay(r *state.Replay) status {
	out := x.c.Out
	x.c.Out = append(out[:len(out)-4], r.Result...)
	if r.Moved {
		x.setFH(r.File)
	}
	x.turn.Release()
	x.turn = state.Turn{}
	x.whole = true
	return status(binary.BigEndian.Uint32(r.Result))
}
