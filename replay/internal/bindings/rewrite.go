package bindings

import (
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Rewritten is the op as it goes out: what cannot be kept as captured is replaced in a
// copy.
func (w *Clone) Rewritten(f *Form) *plan.Op {
	o := f.Op
	if o.Compound == nil {
		if o = w.adapted3(f); f.Adapted != 0 {
			f.Note = verdict.Adapted
		}
		return o
	}
	copied := false
	replace := func(i int, by plan.CompoundOp) {
		if !copied {
			c := *o.Compound
			c.Ops = slices.Clone(c.Ops)
			p := *o
			p.Compound, o, copied = &c, &p, true
		}
		o.Compound.Ops[i] = by
	}
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		switch nfs4.NfsOpnum4(c.Op) {
		case nfs4.OP_PUTROOTFH:
			if w.Root != nil {
				f.RootReplaced = true
				replace(i, plan.CompoundOp{Op: uint32(nfs4.OP_PUTFH), Name: "PUTFH", Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: w.Root}}})
			}
		case nfs4.OP_OPEN:
			if by, ok := w.undelegated(c); ok {
				f.Note = verdict.Undelegated
				replace(i, by)
			}
			if by, ok := opening(o, i); ok {
				f.Note = verdict.Adapted
				replace(i, by)
			}
		case nfs4.OP_SETATTR:
			if by, ok := w.retimed(f, i); ok {
				replace(i, by)
			}
		}
		if by, ok := w.closing(c); ok {
			f.Note, f.Closes = verdict.Undelegated, true
			replace(i, by)
		}
		if w.lacks == 0 {
			continue
		}
		if by, ok := w.adapted4(f, &o.Compound.Ops[i]); ok {
			f.Note = verdict.Adapted
			replace(i, by)
		}
	}
	return o
}

// undelegated turns an OPEN that claims a delegation into one that does not, if this server never gave it or it has been returned.
func (w *Clone) undelegated(c *plan.CompoundOp) (plan.CompoundOp, bool) {
	at := -1
	for i := range c.Args {
		if c.Args[i].N == "claim" {
			at = i
		}
	}
	if at < 0 || at+1 >= len(c.Args) || c.Args[at+1].Kind != plan.FieldState || w.States[c.Args[at+1].Ref].held() {
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
	by.Args = slices.Concat(c.Args[:at], []plan.Field{{N: "claim", Kind: plan.FieldU32, Value: uint64(to)}}, c.Args[at+2:])
	return by, true
}

// opening drops the request for a delegation in place of an open (RFC 9754, section 3), since the plan goes on with an open.
func opening(o *plan.Op, at int) (by plan.CompoundOp, ok bool) {
	by = o.Compound.Ops[at]
	i := argument(by.Args, "share_access")
	if i < 0 || by.Args[i].Value&nfs4.OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION == 0 || !Opens(o, at) {
		return by, false
	}
	by.Args = slices.Clone(by.Args)
	by.Args[i].Value &^= nfs4.OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION
	return by, true
}

// retimed gives the times that the holder of a delegation has kept (RFC 9754, section 5) the distance to now that they had to the captured
// call: servers ignore times from before the delegation. It leaves them out if this server gave a delegation, or an open, without times.
func (w *Clone) retimed(f *Form, at int) (by plan.CompoundOp, ok bool) {
	by = f.Op.Compound.Ops[at]
	i := argument(by.Args, "obj_attributes")
	if i < 0 || by.Args[i].Kind != plan.FieldRaw {
		return by, false
	}
	var r xdr.Reader
	var attrs nfs4.Fattr4
	r.Reset(by.Args[i].Bytes, 0)
	if attrs.Decode(&r); r.Failed() || !attrs.Attrmask.Has(nfs4.FATTR4_TIME_DELEG_ACCESS) && !attrs.Attrmask.Has(nfs4.FATTR4_TIME_DELEG_MODIFY) || w.attrs.Decode(&attrs) != nil {
		return by, false
	}
	if ref := workload.StateOf(&by); ref != 0 && !w.States[ref].Times {
		var rest nfs4.Bitmap4
		for n := w.attrs.Mask.Next(0); n >= 0; n = w.attrs.Mask.Next(n + 1) {
			if n != nfs4.FATTR4_TIME_DELEG_ACCESS && n != nfs4.FATTR4_TIME_DELEG_MODIFY {
				rest = rest.With(uint32(n))
			}
		}
		w.attrs.Mask, f.Note, f.Less = rest, verdict.Adapted, true
	}
	since := time.Since(time.Unix(0, w.load.Tables.Header.Start+f.Op.Time))
	for _, t := range []*nfs4.Nfstime4{&w.attrs.TimeDelegAccess, &w.attrs.TimeDelegModify} {
		now := time.Unix(t.Seconds, int64(t.Nseconds)).Add(since)
		t.Seconds, t.Nseconds = now.Unix(), uint32(now.Nanosecond())
	}
	attrs = w.attrs.Fattr4()
	by.Args = slices.Clone(by.Args)
	by.Args[i].Bytes = attrs.Append(nil)
	return by, true
}

// closing turns a DELEGRETURN into a CLOSE of the open that this server gave instead of the delegation.
func (w *Clone) closing(c *plan.CompoundOp) (plan.CompoundOp, bool) {
	if nfs4.NfsOpnum4(c.Op) != nfs4.OP_DELEGRETURN || len(c.Args) != 1 || c.Args[0].Kind != plan.FieldState || !w.States[c.Args[0].Ref].Open {
		return plan.CompoundOp{}, false
	}
	id := c.Args[0]
	id.N = "open_stateid"
	return plan.CompoundOp{Op: uint32(nfs4.OP_CLOSE), Name: "CLOSE", Args: []plan.Field{{N: "seqid", Kind: plan.FieldU32}, id}}, true
}
