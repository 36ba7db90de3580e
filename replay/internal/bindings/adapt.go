package bindings

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Lacks is what a server has been found not to support, so that calls are adapted as those of a client that knows.
type Lacks uint16

// What a server may not support.
const (
	LacksAttributes     Lacks = 1 << iota // some of those that are set
	LacksExclusive                        // exclusive creates
	LacksGuarded                          // guarded creates (NFSv3)
	LacksAsked                            // some attributes that are asked for
	LacksWants                            // delegation wants of RFC 9754
	LacksLayouts                          // layouts (pNFS)
	LacksXattrs                           // extended attributes
	LacksDirDelegations                   // delegations of directories
	LacksACLs                             // NFSACL
	LacksReaddirplus                      // READDIRPLUS (NFSv3)
)

// features has the bit for each optional feature. Clients stop using one that the server lacks.
var features = map[ops.Feature]Lacks{ops.Layouts: LacksLayouts, ops.Xattrs: LacksXattrs, ops.DirDelegations: LacksDirDelegations}

// youngWants are the wants that RFC 9754 adds to OPEN. Clients send them only if the attribute open_arguments lists them.
const youngWants = nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS | nfs4.OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION

// Adapt reports whether a call that this server has refused can be sent in another form. It is then sent so from now on.
func (w *Clone) Adapt(f *Form, res xdr.Message) bool {
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
	case *nfs3.READDIRPLUS3res:
		if r.Status == nfs3.NFS3ERR_NOTSUPP {
			return LacksReaddirplus
		}
	case *nfs4.CompoundRes:
		at := len(r.Ops) - 1
		if f.Op.Compound == nil || at < 0 || at >= len(f.Op.Compound.Ops) {
			return 0
		}
		code, _, _ := r.Ops[at].Status()
		return lacking4(nfs4.NfsOpnum4(r.Ops[at].Number), nfs4.Nfsstat4(code))
	}
	return 0
}

// lacking4 is what the status of an operation says that the server lacks.
func lacking4(op nfs4.NfsOpnum4, st nfs4.Nfsstat4) Lacks {
	asks := op == nfs4.OP_GETATTR || op == nfs4.OP_READDIR
	switch {
	case asks && (st == nfs4.NFS4ERR_INVAL || st == nfs4.NFS4ERR_ATTRNOTSUPP || st == nfs4.NFS4ERR_NOTSUPP):
		return LacksAsked
	case st == nfs4.NFS4ERR_ATTRNOTSUPP:
		return LacksAttributes
	case op == nfs4.OP_OPEN && st == nfs4.NFS4ERR_NOTSUPP:
		return LacksExclusive
	case op == nfs4.OP_OPEN && st == nfs4.NFS4ERR_INVAL:
		return LacksWants
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

// adapted3 is a call of NFSv3 without what the server lacks.
func (w *Clone) adapted3(f *Form) *plan.Op {
	switch {
	case f.Op.Program != nfs3.NFS_PROGRAM || f.Op.Version != nfs3.NFS_V3 || w.lacks == 0:
	case f.Op.Procedure == nfs3.NFSPROC3_CREATE:
		return w.create3(f)
	case f.Op.Procedure == nfs3.NFSPROC3_READDIRPLUS && w.lacks&LacksReaddirplus != 0:
		f.Adapted |= LacksReaddirplus
		p := *f.Op
		p.Procedure = nfs3.NFSPROC3_READDIR
		p.Args = slices.DeleteFunc(slices.Clone(p.Args), func(a plan.Field) bool { return a.N == "dircount" })
		return &p
	}
	return f.Op
}

// create3 turns an exclusive CREATE into a guarded one, and a guarded one into one that is not. The attributes are set by the SETATTR
// that clients send behind an exclusive one.
func (w *Clone) create3(f *Form) *plan.Op {
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
func (w *Clone) adapted4(f *Form, c *plan.CompoundOp) (plan.CompoundOp, bool) {
	by := *c
	if w.lacks&(LacksAttributes|LacksExclusive|LacksAsked|LacksWants) == 0 {
		return by, false
	}
	by.Args = slices.Clone(c.Args)
	done := w.asksLess(by.Args) | w.wishesLess(by.Args)
	if e := ops.Operation(c.Op); e != nil && e.Class == ops.Changes { // VERIFY also has attributes
		for _, name := range []string{"openhow", "createattrs", "obj_attributes"} {
			done |= w.setsLess(f, by.Args, name)
		}
	}
	f.Adapted |= done
	return by, done != 0
}

// asksLess leaves out requested attributes that the server does not support.
func (w *Clone) asksLess(args []plan.Field) Lacks {
	at := argument(args, "attr_request")
	if at < 0 || args[at].Kind != plan.FieldRaw || w.lacks&LacksAsked == 0 {
		return 0
	}
	var r xdr.Reader
	var all, some nfs4.Bitmap4
	r.Reset(args[at].Bytes, len(args[at].Bytes))
	if all.Decode(&r); r.Failed() {
		return 0
	}
	less := false
	for n := all.Next(0); n >= 0; n = all.Next(n + 1) {
		if w.takes(n) {
			some = some.With(uint32(n))
		} else {
			less = true
		}
	}
	if !less {
		return 0
	}
	args[at].Bytes = some.Append(nil)
	return LacksAsked
}

// wishesLess leaves out the wants of an OPEN that the server does not know.
func (w *Clone) wishesLess(args []plan.Field) Lacks {
	at := argument(args, "share_access")
	if at < 0 || args[at].Value&youngWants == 0 || w.lacks&LacksWants == 0 {
		return 0
	}
	args[at].Value &^= youngWants
	return LacksWants
}

// setsLess leaves out of an operation the attributes that the server does not support, and ways of creating a file that it does not have.
func (w *Clone) setsLess(f *Form, args []plan.Field, name string) Lacks {
	at := argument(args, name)
	if at < 0 || args[at].Kind != plan.FieldRaw {
		return 0
	}
	raw, done, lost := w.without(args[at].Bytes, name == "openhow")
	if done != 0 {
		args[at].Bytes = raw
		f.Less = f.Less || lost
	}
	return done
}

// without encodes the attributes to set, or the openflag of an OPEN, without what the server lacks. lost says that attributes keep a
// different value from the one that the captured client set.
func (w *Clone) without(b []byte, open bool) (raw []byte, done Lacks, lost bool) {
	var r xdr.Reader
	var less bool
	r.Reset(b, 0)
	if !open {
		var a nfs4.Fattr4
		if a.Decode(&r); r.Failed() {
			return nil, 0, false
		}
		if less, lost = w.fewer(&a); !less {
			return nil, 0, false
		}
		return a.Append(nil), LacksAttributes, lost
	}
	var o nfs4.Openflag4
	if o.Decode(&r); r.Failed() || o.Opentype != nfs4.OPEN4_CREATE {
		return nil, 0, false
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
	if how.Mode != nfs4.EXCLUSIVE4 {
		if less, lost = w.fewer(attrs); less {
			done |= LacksAttributes
		}
	}
	return o.Append(nil), done, lost
}

// fewer leaves out attributes that the server does not support: those missing in supported_attrs, or, if that is not known, those of
// later versions of the protocol. It reports whether there were any, and whether one of them has no substitute.
func (w *Clone) fewer(f *nfs4.Fattr4) (less, lost bool) {
	var a nfs4.Attrs
	if w.lacks&LacksAttributes == 0 || a.Decode(f) != nil {
		return false, false
	}
	var mask nfs4.Bitmap4
	for n := a.Mask.Next(0); n >= 0; n = a.Mask.Next(n + 1) {
		if w.takes(n) {
			mask = mask.With(uint32(n))
			continue
		}
		less = true
		if n != nfs4.FATTR4_MODE_UMASK {
			lost = true
		} else if !a.Has(nfs4.FATTR4_MODE) { // RFC 8275: what a client does without it
			mask = mask.With(nfs4.FATTR4_MODE)
			a.Mode = a.ModeUmask.MuMode &^ a.ModeUmask.MuUmask
		}
	}
	if less {
		a.Mask = mask
		*f = a.Fattr4()
	}
	return less, lost
}

// takes reports whether the server is known, or supposed, to support an attribute.
func (w *Clone) takes(n int) bool {
	if w.supported != nil {
		return w.supported.Has(uint32(n))
	}
	return n < nfs4.FATTR4_SEC_LABEL
}

// supports learns which attributes the server has.
func (w *Clone) supports(c *nfs4.CompoundRes) {
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

// refuses learns which operations the server lacks.
func (w *Clone) refuses(o *plan.Op, c *nfs4.CompoundRes) {
	at := len(c.Ops) - 1
	if at < 0 || at >= len(o.Compound.Ops) {
		return
	}
	switch code, _, _ := c.Ops[at].Status(); nfs4.Nfsstat4(code) {
	case nfs4.NFS4ERR_NOTSUPP, nfs4.NFS4ERR_OP_ILLEGAL, nfs4.NFS4ERR_LAYOUTUNAVAILABLE, nfs4.NFS4ERR_UNKNOWN_LAYOUTTYPE:
		if e := ops.Operation(o.Compound.Ops[at].Op); e != nil {
			w.lacks |= features[e.Feature]
		}
	}
}

// Unserved notes that a server does not serve the program, version or procedure of an op.
func (w *Clone) Unserved(o *plan.Op) {
	if o.Program == nfsacl.NFS_ACL_PROGRAM {
		w.lacks |= LacksACLs
	}
}

// asksAgain reports whether an op only uses what the server is known to lack. An op that modifies is sent nevertheless, so that its
// outcome is judged.
func (w *Clone) asksAgain(o *plan.Op) bool {
	if w.lacks == 0 || o.Modifies {
		return false
	}
	if o.Compound == nil {
		return o.Program == nfsacl.NFS_ACL_PROGRAM && w.lacks&LacksACLs != 0
	}
	again := false
	for i := range o.Compound.Ops {
		op := o.Compound.Ops[i].Op
		e := ops.Operation(op)
		switch {
		case e == nil:
			return false
		case features[e.Feature]&w.lacks != 0:
			again = true
		case op != uint32(nfs4.OP_SEQUENCE) && op != uint32(nfs4.OP_GETATTR) && e.Effect != ops.Puts:
			return false
		}
	}
	return again
}

// Missing names what the server is known to lack.
func (w *Clone) Missing() (list []string) {
	for i, name := range []string{"some attributes that calls set", "exclusive creates", "guarded creates", "some attributes that calls ask for",
		"delegations in place of opens (RFC 9754)", "layouts (pNFS)", "extended attributes", "directory delegations", "NFSACL", "READDIRPLUS"} {
		if w.lacks>>i&1 != 0 {
			list = append(list, name)
		}
	}
	return list
}
