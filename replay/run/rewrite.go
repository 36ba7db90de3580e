package run

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Reasons for calls that are not sent because there is nothing to do.
const (
	reasonNoDelegation = "the server gave no delegation that could be returned"
	reasonReturned     = "the delegation was returned when the server recalled it"
	reasonNoConfirm    = "the server did not ask for OPEN_CONFIRM"
	reasonNoRoot       = "the directory given is the root: nothing stands for what was above the base"
	reasonNoState      = "the state was not established on this server"
)

// omitted says why an op has nothing to do on this server.
func (e *engine) omitted(n *node) string {
	if n.op.Compound == nil {
		return ""
	}
	for i := range n.op.Compound.Ops {
		c := &n.op.Compound.Ops[i]
		switch nfs4.NfsOpnum4(c.Op) {
		case nfs4.OP_PUTROOTFH:
			if n.world.noRoot {
				return reasonNoRoot
			}
		case nfs4.OP_DELEGRETURN, nfs4.OP_FREE_STATEID, nfs4.OP_TEST_STATEID:
			s := stateRef(c)
			switch {
			case s == 0:
			case n.world.states[s].closed && nfs4.NfsOpnum4(c.Op) == nfs4.OP_DELEGRETURN:
				return reasonReturned
			case n.world.states[s].refused:
				return reasonNoDelegation
			case !n.world.states[s].bound && e.load.Tables.States[s-1].Kind == plan.DelegationState:
				return reasonNoDelegation
			}
		case nfs4.OP_CLOSE, nfs4.OP_OPEN_DOWNGRADE, nfs4.OP_LOCKU:
			if s := stateRef(c); s != 0 && n.world.states[s].refused {
				return reasonNoState
			}
		case nfs4.OP_OPEN_CONFIRM:
			if s := stateRef(c); s != 0 && n.world.states[s].bound && !n.world.states[s].unconfirmed {
				return reasonNoConfirm
			}
		}
	}
	return ""
}

func stateRef(c *plan.CompoundOp) int {
	for i := range c.Args {
		if c.Args[i].Kind == plan.FieldState {
			return c.Args[i].Ref
		}
	}
	return 0
}

// above reports whether a symbol without a value is of a directory above the
// base.
func (w *Workload) above(u *errUnbound) bool {
	return u.kind == plan.FieldHandle && u.ref > 0 && w.Tables.Objects[u.ref-1].Origin == plan.Above
}

// rewritten is the op as it goes out: what cannot be kept as captured is
// replaced in a copy.
func (e *engine) rewritten(f *flight) *plan.Op {
	o := f.op
	if o.Compound == nil {
		return o
	}
	copied := false
	replace := func(i int, by plan.CompoundOp) {
		if !copied {
			c := *o.Compound
			c.Ops = append([]plan.CompoundOp(nil), c.Ops...)
			p := *o
			p.Compound, o, copied = &c, &p, true
		}
		o.Compound.Ops[i] = by
	}
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		switch nfs4.NfsOpnum4(c.Op) {
		case nfs4.OP_PUTROOTFH:
			if f.world.root != nil {
				f.rewrote = true
				replace(i, plan.CompoundOp{Op: uint32(nfs4.OP_PUTFH), Name: "PUTFH", Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: f.world.root}}})
			}
		case nfs4.OP_OPEN:
			if by, ok := f.world.claim(c); ok {
				f.note = noteNoDelegation
				replace(i, by)
			}
		}
	}
	return o
}

// claim turns an OPEN on the strength of a delegation, which this server did
// not give, into one without.
func (w *world) claim(c *plan.CompoundOp) (plan.CompoundOp, bool) {
	at := -1
	for i := range c.Args {
		if c.Args[i].N == "claim" {
			at = i
		}
	}
	if at < 0 || at+1 >= len(c.Args) || c.Args[at+1].Kind != plan.FieldState || w.states[c.Args[at+1].Ref].bound {
		return plan.CompoundOp{}, false
	}
	var to nfs4.OpenClaimType4
	switch nfs4.OpenClaimType4(c.Args[at].Value) {
	case nfs4.CLAIM_DELEGATE_CUR:
		to = nfs4.CLAIM_NULL
	case nfs4.CLAIM_DELEG_CUR_FH:
		to = nfs4.CLAIM_FH
	default:
		return plan.CompoundOp{}, false
	}
	by := *c
	by.Args = append([]plan.Field(nil), c.Args[:at]...)
	by.Args = append(by.Args, plan.Field{N: "claim", Kind: plan.FieldU32, Value: uint64(to)})
	by.Args = append(by.Args, c.Args[at+2:]...)
	return by, true
}

// replyHeader is the size in bytes of the header of an accepted reply whose
// verifier is empty (RFC 5531, section 9).
const replyHeader = 24

// handleSlack is how much longer in bytes a file handle may be here than it was
// in the capture (NFS4_FHSIZE less what is usual).
const handleSlack = 64

// expected is how long the reply will be in bytes, but for data in Write
// chunks, if it is like the captured one; 0 if that is not known.
func expected(o *plan.Op) int {
	x := o.Expect
	if x == nil || x.Results == nil || x.Partial {
		return 0
	}
	n := replyHeader + len(x.Results)
	for i := range x.Data {
		if i >= len(o.Layout.Writes) {
			n += int(x.Data[i].Length+3) &^ 3
		}
	}
	for i := range o.Binds {
		if o.Binds[i].Kind == plan.FieldHandle {
			n += handleSlack
		}
	}
	return n
}

// results borrows memory for what the reply brings, and says how long the rest
// may become.
func (e *engine) results(f *flight) error {
	o := f.op
	size := 1024
	if o.Expect != nil {
		size += len(o.Expect.Results)
	}
	borrow := func(n uint64) error {
		b, err := f.conn.pool.get(int(min(n, maxIO)))
		if err != nil {
			return err
		}
		f.lent = append(f.lent, b)
		f.Results = append(f.Results, b)
		return nil
	}
	chunks := e.opt.Layout && o.Layout != nil && !f.relaid && !f.conn.plain
	field := func(args []plan.Field, names ...string) uint64 {
		for i := range args {
			for _, n := range names {
				if args[i].N == n && args[i].Kind == plan.FieldU32 {
					return args[i].Value
				}
			}
		}
		return 0
	}
	read := func(op uint32, args []plan.Field) error {
		switch nfs4.NfsOpnum4(op) {
		case nfs4.OP_READ, nfs4.OP_READ_PLUS:
			return borrow(field(args, "count", "rpa_count"))
		case nfs4.OP_READDIR:
			size += int(min(field(args, "maxcount"), maxIO))
		case nfs4.OP_READLINK, nfs4.OP_GETXATTR:
			size += 64 << 10
		case nfs4.OP_LISTXATTRS:
			size += int(min(field(args, "lxa_maxcount"), maxIO))
		}
		return nil
	}
	f.Results = nil
	switch {
	case o.Compound != nil:
		for i := range o.Compound.Ops {
			if err := read(o.Compound.Ops[i].Op, o.Compound.Ops[i].Args); err != nil {
				return err
			}
		}
	case o.Program == 100003 && o.Version == 3:
		switch o.Procedure {
		case 6: // READ
			if err := borrow(field(o.Args, "count")); err != nil {
				return err
			}
		case 16, 17: // READDIR, READDIRPLUS
			size += int(min(field(o.Args, "count", "maxcount"), maxIO))
		case 5: // READLINK
			size += 4096
		}
	case o.Program == 100227: // NFSACL: ACLs may have 1024 entries of 12 bytes, twice
		size += 28 << 10
	}
	if chunks {
		// The captured chunks say what the reply may bring.
		for i, w := range o.Layout.Writes {
			var n uint64
			for _, l := range w {
				n += uint64(l)
			}
			if i >= len(f.Results) {
				if err := borrow(n); err != nil {
					return err
				}
			} else if n > uint64(len(f.Results[i])) {
				b, err := f.conn.pool.get(int(min(n, maxIO)))
				if err != nil {
					return err
				}
				f.lent = append(f.lent, b)
				f.Results[i] = b
			}
		}
		if len(o.Layout.Writes) < len(f.Results) {
			// It came inline or in the Reply chunk.
			for _, r := range f.Results[len(o.Layout.Writes):] {
				size += len(r)
			}
			f.Results = f.Results[:len(o.Layout.Writes)]
		}
		if n := expected(o); n > 0 {
			size = n
		}
	}
	f.MaxReply = size
	return nil
}
