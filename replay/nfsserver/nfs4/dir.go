package nfs4

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// appendChange appends a change_info4.
func appendChange(b []byte, w *store.Wcc) []byte {
	b = xdr.AppendBool(b, w.Atomic)
	b = xdr.AppendUint64(b, w.Before.Change)
	return xdr.AppendUint64(b, w.After.Change)
}

// dirOps executes the operations on names.
type dirOps struct {
	*request
	*objects
	*reply
	*attrWriter
	*attrReader
	files     *guard
	wcc, wcc2 store.Wcc
	list      store.DirList
	buf       []byte
}

func (x *dirOps) create(a *nfs4.CREATE4args) status {
	if st := x.name(a.Objname); st != ok {
		return st
	}
	given, st := x.takeAttrs(&a.Createattrs, creatable)
	if st != ok {
		return st
	}
	if x.set.Mask&store.SetSize != 0 {
		return nfs4.NFS4ERR_INVAL // none of these has a size to set
	}
	cred := &x.c.Cred
	var err error
	switch t := a.Objtype.Type; t {
	case nfs4.NF4DIR:
		err = x.files.Mkdir(cred, x.fh, a.Objname, &x.set, &x.attr, &x.wcc)
	case nfs4.NF4LNK:
		text, fine := x.c.Bytes(a.Objtype.Linkdata)
		switch {
		case !fine:
			return nfs4.NFS4ERR_BADXDR
		case len(text) == 0:
			return nfs4.NFS4ERR_INVAL
		}
		err = x.files.Symlink(cred, x.fh, a.Objname, text, &x.set, &x.attr, &x.wcc)
	case nfs4.NF4BLK, nfs4.NF4CHR, nfs4.NF4SOCK, nfs4.NF4FIFO:
		var dev store.Device
		if t == nfs4.NF4BLK || t == nfs4.NF4CHR {
			dev = store.Device{Major: a.Objtype.Devdata.Specdata1, Minor: a.Objtype.Devdata.Specdata2}
		}
		err = x.files.Mknod(cred, x.fh, a.Objname, store.Type(t), dev, &x.set, &x.attr, &x.wcc)
	default:
		return nfs4.NFS4ERR_BADTYPE // regular files are created by OPEN
	}
	if err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.setObject()
	x.c.Out = given.append(appendChange(x.c.Out, &x.wcc))
	return ok
}

func (x *dirOps) remove(a *nfs4.REMOVE4args) status {
	if st := x.name(a.Target); st != ok {
		return st
	}
	err := x.files.Remove(&x.c.Cred, x.fh, a.Target, &x.wcc)
	if store.Of(err) == store.ErrIsDir {
		err = x.files.Rmdir(&x.c.Cred, x.fh, a.Target, &x.wcc)
	}
	if err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.c.Out = appendChange(x.c.Out, &x.wcc)
	return ok
}

func (x *dirOps) rename(a *nfs4.RENAME4args) status {
	if st := x.name(a.Oldname); st != ok {
		return st
	}
	if st := x.name(a.Newname); st != ok {
		return st
	}
	if err := x.files.Rename(&x.c.Cred, x.saved.fh, a.Oldname, x.fh, a.Newname, &x.wcc, &x.wcc2); err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.c.Out = appendChange(appendChange(x.c.Out, &x.wcc), &x.wcc2)
	return ok
}

func (x *dirOps) link(a *nfs4.LINK4args) status {
	if st := x.name(a.Newname); st != ok {
		return st
	}
	if err := x.files.Link(&x.c.Cred, x.saved.fh, x.fh, a.Newname, &x.attr, &x.wcc); err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.c.Out = appendChange(x.c.Out, &x.wcc)
	return ok
}

// The least and the most entries that are read from the store at a time.
const (
	minEntries = 8
	maxEntries = 512
)

// attrless are the attributes of an entry that do not need those of its object.
var attrless = makeSet(nfs4.FATTR4_RDATTR_ERROR)

func (x *dirOps) readdir(a *nfs4.READDIR4args) status {
	want, _ := setOf(a.AttrRequest.Bitmap4)
	if want.and(writeOnly).and(x.s.supported[x.minor]) != (attrSet{}) {
		return nfs4.NFS4ERR_INVAL
	}
	if a.Cookie == 1 || a.Cookie == 2 {
		return nfs4.NFS4ERR_BAD_COOKIE
	}
	// maxcount bounds the whole READDIR4resok. Entries that do not fit into the reply are left to
	// the next call.
	room := min(uint64(a.Maxcount), uint64(x.room()))
	const frame = 8 + 4 + 4 // verifier, no more entries, eof
	if room < frame {
		return nfs4.NFS4ERR_TOOSMALL
	}
	c := x.c
	start := len(c.Out)
	limit := start + int(room) - 8 // after the entries
	c.Out = append(c.Out, make([]byte, 8)...)
	cookie, verifier := a.Cookie, binary.BigEndian.Uint64(a.Cookieverf[:])
	if cookie == 0 {
		verifier = 0
	}
	l := &x.list
	l.Attrs = want.and(attrless) != want
	entries, eof, full := 0, false, false
	for !eof && !full {
		l.Max = min(max((limit-len(c.Out))/160, minEntries), maxEntries)
		if err := x.s.store.ReadDir(&c.Cred, x.fh, cookie, verifier, l); err != nil {
			return x.inDirectory(err, x.fh)
		}
		for i := range l.Entries {
			e := &l.Entries[i]
			cookie = e.Cookie
			if l.Attrs && !e.HasAttr {
				continue // it has gone meanwhile
			}
			before := len(c.Out)
			b := xdr.AppendUint32(c.Out, 1)
			b = xdr.AppendUint64(b, e.Cookie)
			c.Out = xdr.AppendOpaque(b, e.Name)
			if st := x.appendFattr(want, &e.Attr); st != ok {
				return st
			}
			if len(c.Out) > limit {
				c.Out, full = c.Out[:before], true
				break
			}
			entries++
		}
		verifier = l.Verifier
		eof = l.EOF || len(l.Entries) == 0
	}
	if full && entries == 0 {
		return nfs4.NFS4ERR_TOOSMALL
	}
	binary.BigEndian.PutUint64(c.Out[start:], l.Verifier)
	c.Out = xdr.AppendBool(xdr.AppendUint32(c.Out, 0), !full)
	return ok
}

func (x *dirOps) readlink() status {
	b, err := x.s.store.Readlink(&x.c.Cred, x.fh, x.buf[:0])
	if err != nil {
		if store.Of(err) == store.ErrInval && x.minor > 0 {
			return nfs4.NFS4ERR_WRONG_TYPE
		}
		return statusOf(err)
	}
	x.buf = b
	if n := x.c.Items(); x.c.MaxItem(n, uint32(len(b))) < uint32(len(b)) {
		return x.beyond // the client's chunk is too small, and half a text is of no use
	}
	if len(b)+4 > x.room() {
		return x.beyond
	}
	x.data(append([]byte(nil), b...)) // it stays until the reply was sent
	return ok
}
