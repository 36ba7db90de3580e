package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// File is what a transaction is about, put together from arguments and results: an
// object, and a range of it.
type File struct {
	Handle []byte // of the object, or of the directory that Name is in
	Name   []byte // as it stands in the call; nil if the call has only a handle
	To     []byte // new name of RENAME and LINK, target of SYMLINK
	Result []byte // handle that the reply gives for Name
	// Unnamed: the call has a name in the directory Handle, but it was cut off, or cannot be read. Name is nil, and there is no Path.
	Unnamed bool

	HasRange bool
	Offset   uint64
	Count    uint64 // bytes asked for, or sent
	// Moved is the number of bytes that the reply says were read or written.
	HasMoved bool
	Moved    uint64
	EOF      bool
	Stable   string // of WRITE
}

// File returns what the transaction is about; nil if it is about no file.
func (v *View) File() *File {
	f := &v.file
	if !v.fileDone {
		v.fileDone = true
		*f = File{}
		switch {
		case v.clean != nil && v.compound:
			v.projection.fileOf(v.Tx, f)
		case !v.fileOf3():
			v.fileOf()
		}
	}
	if f.Handle == nil && f.Name == nil && !f.HasRange {
		return nil
	}
	return f
}

// fileOf fills in the File of all but clean calls of NFSv3.
func (v *View) fileOf() {
	tx := v.Tx
	of3 := tx.Program == nfs3.NFS_PROGRAM && tx.Version == nfs3.NFS_V3
	switch v.Args().(type) {
	case nil:
	case *nfs4.CompoundArgs:
		v.fileOfCompound()
	case *nfs4.CbCompoundArgs:
		v.fileOfCallback()
	default:
		e := ops.Procedure(tx.Program, tx.Version, tx.Procedure)
		if e == nil || !of3 {
			v.fileOther(v.Args())
			v.known()
			return
		}
		x := v.follower()
		x.take(e, v.Args(), v.Result())
		v.file.Result = x.outcome.Handle
		v.known()
	}
}

// fileOfCompound draws a File from a COMPOUND: of its operations the last one that
// is about something.
func (v *View) fileOfCompound() {
	x := v.follower()
	list := v.Operations()
	for i := range list {
		o := &list[i]
		result := o.Result
		if o.Code != uint32(nfs4.NFS4_OK) {
			result = nil
		}
		e := ops.Operation(o.Number)
		switch {
		case e == nil:
		case o.Args != nil:
			x.take(e, o.Args, result)
		default:
			x.takeCut(o.Number)
		}
		x.walk.Step(o.Number, o.Args, result)
		x.came(e != nil && e.Gives.Has(ops.Handle) && result != nil)
	}
}

func (v *View) fileOfCallback() {
	x := v.follower()
	list := v.Operations()
	for i := range list {
		if e := ops.Callback(list[i].Number); e != nil {
			x.take(e, list[i].Args, nil)
		}
	}
}

// follower is scratch: what puts the File together, and stands before the first operation.
func (v *View) follower() *follower {
	x := &v.projection.walk
	x.file = &v.file
	x.walk.Reset()
	return x
}

// fileOther covers all other programs by the names of their fields.
func (v *View) fileOther(m xdr.Message) {
	v.picker = picker{f: &v.file}
	m.Walk(&v.picker)
}

// picker is a Visitor that fills a File.
type picker struct {
	f      *File
	typ    string // of the structure that was begun last
	offset uint64
	ranged bool
}

func (p *picker) Begin(_, typ string, _ int) { p.typ = typ }

func (p *picker) End() {}

func (p *picker) Int(string, int64) {}

func (p *picker) Bool(string, bool) {}

func (p *picker) Enum(string, uint32, string) {}

func (p *picker) Flags(string, uint64, string) {}

func (p *picker) Time(string, int64, uint32) {}

func (p *picker) Data(name string, d xdr.Data) {
	switch name {
	case "data":
		p.f.span(p.offset, uint64(d.Length))
	case "to":
		if len(d.Inline) == int(d.Length) { // else the capture cut it
			p.f.To = d.Inline
		}
	}
}

func (p *picker) Uint(name string, v uint64) {
	switch name {
	case "offset", "l_offset":
		p.offset, p.ranged = v, true
	case "count", "l_len":
		if p.ranged {
			p.f.span(p.offset, v)
		}
	}
}

func (p *picker) Bytes(name string, v []byte) {
	switch name {
	case "fh", "fhandle", "file", "dir", "object", "from":
		if p.f.Handle == nil {
			p.f.Handle = v
		}
	case "data":
		if p.f.Handle == nil && p.typ == "nfs_fh3" { // NFSACL version 3
			p.f.Handle = v
		}
	}
}

func (p *picker) String(name string, v []byte) {
	switch name {
	case "name", "dirpath", "mon_name":
		if v == nil {
			p.f.Unnamed = p.f.Unnamed || p.f.Name == nil
		} else if p.f.Name == nil {
			p.f.Name = v
		} else {
			p.f.To = v
		}
	}
}

func (f *File) span(offset, count uint64) {
	f.HasRange, f.Offset, f.Count = true, offset, count
}
