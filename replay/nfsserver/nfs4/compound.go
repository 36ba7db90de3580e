package nfs4

import (
	"errors"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
)

// compound executes a COMPOUND. It is reused for others.
type compound struct {
	request
	args   nfs4.CompoundArgs
	next   int // the operation to continue with
	files  guard
	reply  reply
	place  place
	sender sender
	holder holder
	writer attrWriter
	reader attrReader
	turns  turns

	// What executes the operations, by what they are about.
	objects objects
	attrs   attrOps
	dirs    dirOps
	data    dataOps
	xattrs  xattrOps
	opens   openOps
	locks   lockOps
	clients clientOps
}

func newCompound(s *Server) *compound {
	x := &compound{request: request{s: s}}
	r, o, out := &x.request, &x.objects, &x.reply
	x.objects.request = r
	x.place = place{request: r, reply: out}
	x.sender = sender{request: r, files: &x.files, args: &x.args}
	x.holder = holder{request: r, objects: o, sender: &x.sender}
	x.writer.request, x.reader.request = r, r
	x.turns = turns{objects: o, reply: out}
	x.attrs = attrOps{request: r, objects: o, attrWriter: &x.writer, attrReader: &x.reader, sender: &x.sender, holder: &x.holder, files: &x.files}
	x.dirs = dirOps{request: r, objects: o, reply: out, attrWriter: &x.writer, attrReader: &x.reader, files: &x.files}
	x.data = dataOps{request: r, objects: o, reply: out, sender: &x.sender, files: &x.files}
	x.xattrs = xattrOps{request: r, objects: o, reply: out, files: &x.files}
	x.opens = openOps{request: r, objects: o, turns: &x.turns, attrReader: &x.reader, sender: &x.sender, files: &x.files}
	x.locks = lockOps{request: r, objects: o, turns: &x.turns, reply: out}
	x.clients = clientOps{request: r, objects: o, reply: out, place: &x.place}
	return x
}

func (x *compound) reset(c *nfsserver.Call) {
	x.request = request{s: x.s, c: c}
	x.files = guard{Store: x.s.store, table: x.s.table}
	x.next, x.holder.asked = 0, -1
	x.place.reset()
	x.objects.reset()
	x.writer.statOK, x.data.copied = false, 0
	x.reply.reset(c)
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
	x.minor, x.count = minor, count
	x.reply.head(tag, minor, x.s.table.Limits().Reply)

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
		if minor == 0 && mustBeOnce(x.args.Ops) {
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
	x.place.end(x.reply.end(done, st))
	x.c.Send()
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
		} else if s := x.place.position(number); s != ok {
			st = s
		}
		x.c.Out = xdr.AppendUint32(x.c.Out, number)
		x.c.Out = appendFailure(x.c.Out, number, st)
		return done + 1, st, false
	}
	return done, ok, false
}

// operation executes one operation and appends its result.
func (x *compound) operation(number uint32, body xdr.Message) (st status, sent bool) {
	info := lookupOp(number, x.minor)
	if info == nil {
		number = uint32(nfs4.OP_ILLEGAL)
	}
	x.reply.open(number)
	x.objects.moved, x.turns.turn = false, state.Turn{}
	switch {
	case info == nil:
		st = nfs4.NFS4ERR_OP_ILLEGAL
	case number == uint32(nfs4.OP_SEQUENCE):
		if st, sent = x.place.sequence(body.(*nfs4.SEQUENCE4args), x.args.Ops); sent {
			return st, true
		}
		x.files.by = x.client
	default:
		if st = x.check(number, info); st == ok {
			st = info.do(x, body)
		}
	}
	if st == later {
		x.reply.undo()
		return st, false
	}
	st = x.reply.close(number, st, info)
	x.turns.turn.End(st, x.reply.encoded(), x.objects.fh, x.objects.moved)
	return st, false
}

// check checks whether an operation may be executed.
func (x *compound) check(number uint32, info *opInfo) status {
	st := x.place.position(number)
	switch {
	case st != ok:
		return st
	case info.fh && !x.objects.hasFH:
		return nfs4.NFS4ERR_NOFILEHANDLE
	case info.saved && !x.objects.saved.hasFH && number == uint32(nfs4.OP_RESTOREFH):
		return nfs4.NFS4ERR_RESTOREFH
	case info.saved && !x.objects.saved.hasFH:
		return nfs4.NFS4ERR_NOFILEHANDLE
	case x.wrongSecurity(number):
		return nfs4.NFS4ERR_WRONGSEC
	case !x.reply.fits(info.reserve):
		return x.reply.beyond // before anything is changed
	}
	return ok
}

// wrongSecurity reports whether an operation would set a filehandle that must not be used
// with the flavor of the call. Only asking for the allowed flavors is permitted (RFC 8881,
// section 2.6.3.1.1).
func (x *compound) wrongSecurity(number uint32) bool {
	switch nfs4.NfsOpnum4(number) {
	case nfs4.OP_PUTFH, nfs4.OP_PUTROOTFH, nfs4.OP_PUTPUBFH:
	default:
		return false
	}
	if x.c.Allowed() {
		return false
	}
	if n := x.index + 1; n < len(x.args.Ops) {
		switch nfs4.NfsOpnum4(x.args.Ops[n].Number) {
		case nfs4.OP_SECINFO, nfs4.OP_SECINFO_NO_NAME:
			return false
		}
	}
	return true
}
