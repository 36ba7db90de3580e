package bindings

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Lacks is what a server has been found not to support, so that calls are adapted as those of a client that knows.
type Lacks uint8

// What a server may not support.
const (
	LacksAttributes Lacks = 1 << iota // some of those that are set
	LacksExclusive                    // exclusive creates
	LacksGuarded                      // guarded creates (NFSv3)
)

// Adapt reports whether a call that this server has refused can be sent in another form. It is then sent so from now on.
func (w *World) Adapt(f *Form, res xdr.Message) bool {
	found := lacking(f, res) &^ f.Adapted
	if found == 0 {
		return false
	}
	old, form := w.lacks, *f
	w.lacks |= found
	if w.Rewritten(&form); form.Adapted&found == 0 {
		w.lacks = old
		return false
	}
	return true
}

// lacking is what the status of a reply says that the server lacks.
func lacking(f *Form, res xdr.Message) Lacks {
	switch r := res.(type) {
	case *nfs3.CREATE3res:
		if r.Status != nfs3.NFS3ERR_NOTSUPP {
			return 0
		}
		if f.Adapted&LacksExclusive != 0 || createMode3(f.Op) == uint32(nfs3.GUARDED) {
			return LacksGuarded
		}
		return LacksExclusive
	case *nfs4.CompoundRes:
		at := len(r.Ops) - 1
		if f.Op.Compound == nil || at < 0 || at >= len(f.Op.Compound.Ops) {
			return 0
		}
		switch code, _, _ := r.Ops[at].Status(); nfs4.Nfsstat4(code) {
		case nfs4.NFS4ERR_ATTRNOTSUPP:
			return LacksAttributes
		case nfs4.NFS4ERR_NOTSUPP:
			if nfs4.NfsOpnum4(r.Ops[at].Number) == nfs4.OP_OPEN {
				return LacksExclusive
			}
		}
	}
	return 0
}

// createMode3 is how a CREATE of NFSv3 treats a file that exists.
func createMode3(o *plan.Op) uint32 {
	if i := argument(o.Args, "mode"); i >= 0 {
		return uint32(o.Args[i].Value)
	}
	return uint32(nfs3.UNCHECKED)
}

// argument is the index of a field; -1 if there is none.
func argument(args []plan.Field, name string) int {
	for i := range args {
		if args[i].N == name {
			return i
		}
	}
	return -1
}

// adapted3 turns an exclusive CREATE into a guarded one, and a guarded one into one that is not. The attributes are set by the SETATTR
// that clients send behind an exclusive one.
func (w *World) adapted3(f *Form) *plan.Op {
	o := f.Op
	mode := createMode3(o)
	to := mode
	if to == uint32(nfs3.EXCLUSIVE) && w.lacks&LacksExclusive != 0 {
		to, f.Adapted = uint32(nfs3.GUARDED), f.Adapted|LacksExclusive
	}
	if to == uint32(nfs3.GUARDED) && w.lacks&LacksGuarded != 0 {
		to, f.Adapted = uint32(nfs3.UNCHECKED), f.Adapted|LacksGuarded
	}
	at := argument(o.Args, "mode")
	if to == mode || at+1 >= len(o.Args) {
		return o
	}
	args := append([]plan.Field(nil), o.Args...)
	args[at].Value = uint64(to)
	if mode == uint32(nfs3.EXCLUSIVE) {
		args[at+1] = plan.Field{N: "obj_attributes", Kind: plan.FieldRaw, Bytes: new(nfs3.Sattr3).Append(nil)}
	}
	p := *o
	p.Args = args
	return &p
}

// adapted4 is an operation without what the server lacks.
func (w *World) adapted4(f *Form, c *plan.CompoundOp) (plan.CompoundOp, bool) {
	name := map[nfs4.NfsOpnum4]string{nfs4.OP_OPEN: "openhow", nfs4.OP_CREATE: "createattrs", nfs4.OP_SETATTR: "obj_attributes"}[nfs4.NfsOpnum4(c.Op)]
	at := argument(c.Args, name)
	if at < 0 || c.Args[at].Kind != plan.FieldRaw {
		return plan.CompoundOp{}, false
	}
	raw, done := w.without(c.Args[at].Bytes, name == "openhow")
	if done == 0 {
		return plan.CompoundOp{}, false
	}
	f.Adapted |= done
	by := *c
	by.Args = append([]plan.Field(nil), c.Args...)
	by.Args[at].Bytes = raw
	return by, true
}

// without encodes attributes to be set, or how a file is to be opened, without what the server lacks.
func (w *World) without(b []byte, open bool) (raw []byte, done Lacks) {
	var r xdr.Reader
	r.Reset(b, 0)
	if !open {
		var a nfs4.Fattr4
		if a.Decode(&r); r.Failed() || !w.fewer(&a) {
			return nil, 0
		}
		return a.Append(nil), LacksAttributes
	}
	var o nfs4.Openflag4
	if o.Decode(&r); r.Failed() || o.Opentype != nfs4.OPEN4_CREATE {
		return nil, 0
	}
	how := &o.How
	if how.Mode != nfs4.UNCHECKED4 && how.Mode != nfs4.GUARDED4 && w.lacks&LacksExclusive != 0 {
		if how.Mode == nfs4.EXCLUSIVE4_1 {
			how.Createattrs = how.ChCreateboth.CvaAttrs
		}
		how.Mode = nfs4.GUARDED4
		done |= LacksExclusive
	}
	attrs := &how.Createattrs
	if how.Mode == nfs4.EXCLUSIVE4_1 {
		attrs = &how.ChCreateboth.CvaAttrs
	}
	if how.Mode != nfs4.EXCLUSIVE4 && w.fewer(attrs) {
		done |= LacksAttributes
	}
	return o.Append(nil), done
}

// fewer leaves attributes out that the server does not support: those that it has not named in supported_attrs, or, if nobody has asked for
// that, those that came with later versions of the protocol. It reports whether there were any.
func (w *World) fewer(f *nfs4.Fattr4) bool {
	var a nfs4.Attrs
	if w.lacks&LacksAttributes == 0 || a.Decode(f) != nil {
		return false
	}
	var mask nfs4.Bitmap4
	less := false
	for n := a.Mask.Next(0); n >= 0; n = a.Mask.Next(n + 1) {
		if w.takes(n) {
			mask = mask.With(uint32(n))
			continue
		}
		less = true
		if n == nfs4.FATTR4_MODE_UMASK && !a.Has(nfs4.FATTR4_MODE) { // RFC 8275: what a client does without it
			mask = mask.With(nfs4.FATTR4_MODE)
			a.Mode = a.ModeUmask.MuMode &^ a.ModeUmask.MuUmask
		}
	}
	if less {
		a.Mask = mask
		*f = a.Fattr4()
	}
	return less
}

// takes reports whether the server is known, or supposed, to support an attribute.
func (w *World) takes(n int) bool {
	if w.supported != nil {
		return w.supported.Has(uint32(n))
	}
	return n != nfs4.FATTR4_MODE_UMASK && n != nfs4.FATTR4_TIME_DELEG_ACCESS && n != nfs4.FATTR4_TIME_DELEG_MODIFY && n != nfs4.FATTR4_SEC_LABEL
}

// supports learns which attributes the server has.
func (w *World) supports(c *nfs4.CompoundRes) {
	for i := range c.Ops {
		g, ok := c.Ops[i].Body.(*nfs4.GETATTR4res)
		if !ok || g.Status != nfs4.NFS4_OK || !g.Resok4.ObjAttributes.Attrmask.Has(nfs4.FATTR4_SUPPORTED_ATTRS) {
			continue
		}
		if w.attrs.Decode(&g.Resok4.ObjAttributes) == nil {
			w.supported = append(w.supported[:0], w.attrs.SupportedAttrs.Bitmap4...)
		}
	}
}
