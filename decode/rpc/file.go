package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// File is the subject of a transaction, collected from arguments and results: the object, and the range of
// it.
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
	if !v.fileDone {
		v.fileDone = true
		v.file = File{}
		v.fileOf()
	}
	f := &v.file
	if f.Handle == nil && f.Name == nil && !f.HasRange {
		return nil
	}
	return f
}

func (f *File) span(offset, count uint64) {
	f.HasRange, f.Offset, f.Count = true, offset, count
}

func (f *File) moved(n uint64) { f.HasMoved, f.Moved = true, n }

func (f *File) in3(d *nfs3.Diropargs3) { f.Handle, f.Name = d.Dir.Data, d.Name }

func (v *View) fileOf() {
	f := &v.file
	switch a := v.Args.(type) {
	case nil:
	case *nfs3.GETATTR3args:
		f.Handle = a.Object.Data
	case *nfs3.SETATTR3args:
		f.Handle = a.Object.Data
	case *nfs3.LOOKUP3args:
		f.in3(&a.What)
		if r, ok := v.Result.(*nfs3.LOOKUP3res); ok && r.Status == nfs3.NFS3_OK {
			f.Result = r.Resok.Object.Data
		}
	case *nfs3.ACCESS3args:
		f.Handle = a.Object.Data
	case *nfs3.READLINK3args:
		f.Handle = a.Symlink.Data
	case *nfs3.READ3args:
		f.Handle = a.File.Data
		f.span(a.Offset, uint64(a.Count))
		if r, ok := v.Result.(*nfs3.READ3res); ok && r.Status == nfs3.NFS3_OK {
			f.moved(uint64(r.Resok.Count))
			f.EOF = r.Resok.Eof
		}
	case *nfs3.WRITE3args:
		f.Handle = a.File.Data
		f.span(a.Offset, uint64(a.Count))
		f.Stable = a.Stable.Symbol()
		if r, ok := v.Result.(*nfs3.WRITE3res); ok && r.Status == nfs3.NFS3_OK {
			f.moved(uint64(r.Resok.Count))
		}
	case *nfs3.CREATE3args:
		f.in3(&a.Where)
		if r, ok := v.Result.(*nfs3.CREATE3res); ok && r.Status == nfs3.NFS3_OK && r.Resok.Obj.HandleFollows {
			f.Result = r.Resok.Obj.Handle.Data
		}
	case *nfs3.MKDIR3args:
		f.in3(&a.Where)
		if r, ok := v.Result.(*nfs3.MKDIR3res); ok && r.Status == nfs3.NFS3_OK && r.Resok.Obj.HandleFollows {
			f.Result = r.Resok.Obj.Handle.Data
		}
	case *nfs3.SYMLINK3args:
		f.in3(&a.Where)
		f.To = a.Symlink.SymlinkData.Inline
		if r, ok := v.Result.(*nfs3.SYMLINK3res); ok && r.Status == nfs3.NFS3_OK && r.Resok.Obj.HandleFollows {
			f.Result = r.Resok.Obj.Handle.Data
		}
	case *nfs3.MKNOD3args:
		f.in3(&a.Where)
		if r, ok := v.Result.(*nfs3.MKNOD3res); ok && r.Status == nfs3.NFS3_OK && r.Resok.Obj.HandleFollows {
			f.Result = r.Resok.Obj.Handle.Data
		}
	case *nfs3.REMOVE3args:
		f.in3(&a.Object)
	case *nfs3.RMDIR3args:
		f.in3(&a.Object)
	case *nfs3.RENAME3args:
		f.in3(&a.From)
		f.To = a.To.Name
	case *nfs3.LINK3args:
		f.Handle = a.File.Data
		f.To = a.Link.Name
	case *nfs3.READDIR3args:
		f.Handle = a.Dir.Data
	case *nfs3.READDIRPLUS3args:
		f.Handle = a.Dir.Data
	case *nfs3.FSSTAT3args:
		f.Handle = a.Fsroot.Data
	case *nfs3.FSINFO3args:
		f.Handle = a.Fsroot.Data
	case *nfs3.PATHCONF3args:
		f.Handle = a.Object.Data
	case *nfs3.COMMIT3args:
		f.Handle = a.File.Data
		f.span(a.Offset, uint64(a.Count))
	case *nfs4.CompoundArgs, *nfs4.CbCompoundArgs:
		v.file4()
	default:
		v.fileOther(a)
	}
}

// fileOther covers the programs beside NFSv3 and NFSv4 by the names of their
// fields.
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

func (p *picker) Begin(_, typ string, _ int)   { p.typ = typ }
func (p *picker) End()                         {}
func (p *picker) Int(string, int64)            {}
func (p *picker) Bool(string, bool)            {}
func (p *picker) Enum(string, uint32, string)  {}
func (p *picker) Flags(string, uint64, string) {}
func (p *picker) Time(string, int64, uint32)   {}

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
