package rpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
)

// Sizes of attributes of NFSv3 (RFC 1813, sections 2.5 and 2.6).
const (
	fattr3   = 84
	wccAttr3 = 24
)

// fileOf3 fills in the File of clean calls of NFSv3 as fileOf does, and reads no more than that. It
// returns false for all others.
func (v *View) fileOf3() bool {
	m, tx := v.clean, v.Tx
	if m == nil || !m.nfs3 || tx.Procedure == nfs3.NFSPROC3_NULL {
		return false
	}
	f, args, at := &v.file, tx.Call.Payload, v.projection.argsAt
	f.Handle, at = opaque3(args, at)                           // all other arguments begin with one
	results, from := tx.Reply.Payload, v.projection.resultAt+4 // behind the status
	done := !v.projection.Failed
	switch tx.Procedure {
	case nfs3.NFSPROC3_GETATTR, nfs3.NFSPROC3_SETATTR, nfs3.NFSPROC3_ACCESS, nfs3.NFSPROC3_READDIR, nfs3.NFSPROC3_READDIRPLUS,
		nfs3.NFSPROC3_READLINK, nfs3.NFSPROC3_FSSTAT, nfs3.NFSPROC3_FSINFO, nfs3.NFSPROC3_PATHCONF:
	case nfs3.NFSPROC3_LOOKUP:
		f.Name, _ = opaque3(args, at)
		if done {
			f.Result, _ = opaque3(results, from)
		}
	case nfs3.NFSPROC3_READ:
		f.span(binary.BigEndian.Uint64(args[at:]), uint64(word3(args, at+8)))
		if done {
			from = optional3(results, from, fattr3)
			f.HasMoved, f.Moved, f.EOF = true, uint64(word3(results, from)), word3(results, from+4) != 0
		}
	case nfs3.NFSPROC3_WRITE:
		f.span(binary.BigEndian.Uint64(args[at:]), uint64(word3(args, at+8)))
		f.Stable = nfs3.StableHow(word3(args, at+12)).Symbol()
		if done {
			from = optional3(results, from, wccAttr3)
			from = optional3(results, from, fattr3)
			f.HasMoved, f.Moved = true, uint64(word3(results, from))
		}
	case nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR:
		f.Name, _ = opaque3(args, at)
		if done && word3(results, from) != 0 {
			f.Result, _ = opaque3(results, from+4)
		}
	case nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR:
		f.Name, _ = opaque3(args, at)
	case nfs3.NFSPROC3_RENAME:
		f.Name, at = opaque3(args, at)
		_, at = opaque3(args, at)
		f.To, _ = opaque3(args, at)
	default:
		f.Handle = nil
		return false
	}
	return true
}

// opaque3 is an opaque or a string in a message that Set has checked, and where the next item is: it need not look for errors.
func opaque3(b []byte, at int) (item []byte, next int) {
	size := int(word3(b, at))
	at += 4
	if size == 0 {
		return b[:0:0], at
	}
	return b[at : at+size : at+size], at + (size+3)&^3
}

// word3 is a number in such a message.
func word3(b []byte, at int) uint32 { return binary.BigEndian.Uint32(b[at : at+4 : at+4]) }

// optional3 passes over attributes that may be there.
func optional3(b []byte, at, size int) (next int) {
	if word3(b, at) != 0 {
		at += size
	}
	return at + 4
}
