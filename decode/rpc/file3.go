package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Sizes of attributes of NFSv3 (RFC 1813, sections 2.5 and 2.6).
const (
	fattr3   = 84
	wccAttr3 = 24
)

// usual3 fills in the File of the usual calls of NFSv3 as fileOf does, but reads no more of a usual transaction than that. It
// returns false for all others.
func (v *View) usual3() bool {
	if v.usual == nil {
		return false
	}
	f, r := &v.file, &v.brief.body.reader
	r.Reset(v.Tx.Call.Payload[v.brief.argsAt:], 0)
	switch v.Tx.Procedure {
	case nfs3.NFSPROC3_GETATTR, nfs3.NFSPROC3_SETATTR, nfs3.NFSPROC3_ACCESS:
		f.Handle = r.Opaque(0)
	case nfs3.NFSPROC3_LOOKUP:
		f.Handle, f.Name = r.Opaque(0), r.Opaque(0)
		if !v.brief.Failed {
			v.result3(r)
			f.Result = r.Opaque(0)
		}
	case nfs3.NFSPROC3_READ:
		f.Handle = r.Opaque(0)
		f.span(r.Uint64(), uint64(r.Uint32()))
		if !v.brief.Failed {
			v.result3(r)
			optional3(r, fattr3)
			f.HasMoved, f.Moved, f.EOF = true, uint64(r.Uint32()), r.Bool()
		}
	case nfs3.NFSPROC3_WRITE:
		f.Handle = r.Opaque(0)
		f.span(r.Uint64(), uint64(r.Uint32()))
		f.Stable = nfs3.StableHow(r.Uint32()).Symbol()
		if !v.brief.Failed {
			v.result3(r)
			optional3(r, wccAttr3)
			optional3(r, fattr3)
			f.HasMoved, f.Moved = true, uint64(r.Uint32())
		}
	case nfs3.NFSPROC3_CREATE:
		f.Handle, f.Name = r.Opaque(0), r.Opaque(0)
		if !v.brief.Failed {
			v.result3(r)
			if r.Bool() {
				f.Result = r.Opaque(0)
			}
		}
	case nfs3.NFSPROC3_REMOVE:
		f.Handle, f.Name = r.Opaque(0), r.Opaque(0)
	case nfs3.NFSPROC3_RENAME:
		f.Handle, f.Name = r.Opaque(0), r.Opaque(0)
		r.Opaque(0)
		f.To = r.Opaque(0)
	default:
		return false
	}
	return true
}

// learnUsual is learnGiven for a usual transaction that did not fail. Of LOOKUP, it reads no more than what is learned.
func (v *View) learnUsual(n *Names) {
	tx := v.Tx
	if v.fileDone || tx.Procedure != nfs3.NFSPROC3_LOOKUP || tx.Version != nfs3.NFS_V3 || tx.Program != nfs3.NFS_PROGRAM {
		v.learnGiven(n)
		return
	}
	r := &v.brief.body.reader
	r.Reset(tx.Call.Payload[v.brief.argsAt:], 0)
	dir, name := r.Opaque(0), r.Opaque(0)
	v.result3(r)
	n.learn(dir, r.Opaque(0), name)
}

// learn3 learns what the usual calls of NFSv3 that change names tell, as Learn does. It returns false for all others.
func (v *View) learn3(n *Names) bool {
	r := &v.brief.body.reader
	r.Reset(v.Tx.Call.Payload[v.brief.argsAt:], 0)
	switch v.Tx.Procedure {
	case nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR:
		if !v.brief.Failed {
			n.remove(r.Opaque(0), r.Opaque(0))
		}
	case nfs3.NFSPROC3_RENAME:
		if !v.brief.Failed {
			n.rename(r.Opaque(0), r.Opaque(0), r.Opaque(0), r.Opaque(0))
		}
	default:
		return false
	}
	return true
}

// result3 has the reader go on behind the status of the results.
func (v *View) result3(r *xdr.Reader) {
	r.Reset(v.Tx.Reply.Payload[v.brief.resultAt:], 0)
	r.Skip(4)
}

// optional3 passes over attributes that may be there.
func optional3(r *xdr.Reader, size int) {
	if r.Bool() {
		r.Skip(size)
	}
}
