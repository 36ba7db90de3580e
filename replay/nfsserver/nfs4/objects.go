package nfs4

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// selected is a filehandle with the stateid that goes with it (RFC 8881, section 16.2.3.1.2).
type selected struct {
	fh            store.Handle
	sid           nfs4.Stateid4
	hasFH, hasSid bool
}

// objects are what the operations of a COMPOUND have selected.
type objects struct {
	*request
	selected // the current one
	saved    selected
	moved    bool // the operation has changed the current filehandle
	// attr are the attributes of fh as of the previous operation, if attrAt is its index.
	attr   store.Attr
	attrAt int
}

func (x *objects) reset() {
	x.selected, x.saved, x.attrAt = selected{}, selected{}, -2
}

// setFH makes h the current filehandle.
func (x *objects) setFH(h store.Handle) {
	x.fh, x.hasFH, x.hasSid = h, true, false
	x.moved = true
}

// setObject makes the object of x.attr the current one.
func (x *objects) setObject() {
	x.setFH(x.attr.Handle)
	x.attrAt = x.index
}

func (x *objects) putfh(a *nfs4.PUTFH4args) status {
	h, err := x.s.info.Handles.Open(a.Object)
	if err != nil {
		return statusOf(err)
	}
	if err = x.s.store.GetAttr(h, &x.attr); err != nil {
		return statusOf(err)
	}
	x.setFH(h)
	x.attrAt = x.index
	return ok
}

func (x *objects) putrootfh() status {
	x.setFH(x.s.root)
	return ok
}

func (x *objects) getfh() status {
	x.c.Out = x.s.appendHandle(x.c.Out, x.fh)
	if x.attrAt+1 == x.index {
		x.attrAt = x.index
	}
	return ok
}

func (x *objects) savefh() status {
	x.saved = x.selected
	return ok
}

func (x *objects) restorefh() status {
	x.selected, x.moved = x.saved, true
	return ok
}

func (x *objects) lookup(a *nfs4.LOOKUP4args) status {
	if st := x.name(a.Objname); st != ok {
		return st
	}
	if err := x.s.store.Lookup(&x.c.Cred, x.fh, a.Objname, &x.attr); err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.setObject()
	return ok
}

func (x *objects) lookupp() status {
	if x.fh == x.s.root {
		return nfs4.NFS4ERR_NOENT
	}
	h, err := x.s.store.Parent(&x.c.Cred, x.fh)
	if err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.setFH(h)
	return ok
}

// attributes returns the attributes of the current filehandle.
func (x *objects) attributes() (*store.Attr, status) {
	if x.attrAt+1 == x.index {
		x.attrAt = x.index
		return &x.attr, ok
	}
	if err := x.s.store.GetAttr(x.fh, &x.attr); err != nil {
		return nil, statusOf(err)
	}
	x.attrAt = x.index
	return &x.attr, ok
}

// size is the size of the current object, which has to be a regular file.
func (x *objects) size() (uint64, status) {
	at, st := x.attributes()
	if st != ok {
		return 0, st
	}
	return at.Size, x.regular(at.Type)
}

// stateid replaces the special stateid for "current" with the current stateid (RFC 8881,
// section 16.2.3.1.2).
func (x *objects) stateid(s *nfs4.Stateid4) (*nfs4.Stateid4, status) {
	if x.minor == 0 || *s != state.Current {
		return s, ok
	}
	if !x.hasSid {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	return &x.sid, ok
}

func (x *objects) setStateid(s nfs4.Stateid4) { x.sid, x.hasSid = s, true }

// result appends a stateid that an operation has given.
func (x *objects) result(sid nfs4.Stateid4, st status) status {
	if st == ok {
		x.setStateid(sid)
		x.c.Out = sid.Append(x.c.Out)
	}
	return st
}
