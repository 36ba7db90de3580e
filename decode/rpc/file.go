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
		if !v.usual3() {
			v.fileOf()
		}
	}
	if f.Handle == nil && f.Name == nil && !f.HasRange {
		return nil
	}
	return f
}

// fileOf fills in the File of all but usual calls of NFSv3.
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
			return
		}
		v.take(e, v.Args(), v.Result())
		v.file.Result = v.outcome.Handle
	}
}

// fileOfCompound draws a File from a COMPOUND: of its operations the last one that
// is about something.
func (v *View) fileOfCompound() {
	f, t := &v.file, &v.trail
	t.Reset()
	list := v.Operations()
	for i := range list {
		o := &list[i]
		result := o.Result
		if o.Code != uint32(nfs4.NFS4_OK) {
			result = nil
		}
		e := ops.Operation(o.Number)
		if e != nil {
			v.take(e, o.Args, result)
		}
		t.Step(o.Number, o.Args, result)
		switch now := &t.Current; {
		case now.Handle == nil:
		case f.Handle == nil && f.Name == nil:
			f.Handle = now.Handle
		case e != nil && e.Gives.Has(ops.Handle) && result != nil && now.Is(f.Handle, f.Name):
			f.Result = now.Handle
		}
	}
}

func (v *View) fileOfCallback() {
	v.trail.Reset()
	list := v.Operations()
	for i := range list {
		if e := ops.Callback(list[i].Number); e != nil {
			v.take(e, list[i].Args, nil)
		}
	}
}

// take adds what a procedure or operation is about, and what its results say about it,
// nil if there are none. v.trail is where the COMPOUND stands before it.
func (v *View) take(e *ops.Entry, args, results xdr.Message) {
	f, a, o := &v.file, &v.act, &v.outcome
	*o = ops.Outcome{}
	if args == nil || !e.HasPlaces() {
		return
	}
	e.Act(args, a)
	p := a.Subject()
	if p == nil {
		return
	}
	if p.File == ops.Given {
		f.Handle, f.Name, f.Result = p.Handle, p.Name, nil
	} else {
		v.takeCurrent(p)
	}
	if a.Attribute != nil {
		f.Name = a.Attribute
	}
	if l := a.Places(); len(l) > 1 && l[1].Named {
		f.To = l[1].Name
	} else if a.Text != nil {
		f.To = a.Text
	}
	if a.Ranged {
		f.span(a.Offset, a.Count)
	}
	if a.Stable != "" {
		f.Stable = a.Stable
	}
	if results == nil {
		return
	}
	if e.Outcome(results, o); o.HasMoved {
		f.HasMoved, f.Moved, f.EOF = true, o.Moved, o.EOF
	}
}

// takeCurrent takes a file that a COMPOUND has come to.
func (v *View) takeCurrent(p *ops.Place) {
	f := &v.file
	switch r := v.trail.At(p); {
	case p.Named:
		f.Handle, f.Name, f.Result = r.Handle, p.Name, nil
	case r.Name != nil && r.Is(f.Handle, f.Name): // it has its name already
	case r.Name != nil:
		f.Handle, f.Name, f.Result = r.Dir, r.Name, r.Handle
	default:
		f.Handle, f.Name, f.Result = r.Handle, nil, nil
	}
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
		p.f.To = d.Inline
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
		if p.f.Name == nil {
			p.f.Name = v
		} else {
			p.f.To = v
		}
	}
}

func (f *File) span(offset, count uint64) {
	f.HasRange, f.Offset, f.Count = true, offset, count
}
