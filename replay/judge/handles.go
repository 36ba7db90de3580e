package judge

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// handles keeps the file of each handle. Two handles may belong to one file, but one handle must
// not belong to two (RFC 1813, section 2.6).
type handles map[string]uint64

// maxHandles is how many are kept.
const maxHandles = 1 << 16

// is notes that a handle belongs to a file, and reports whether that is possible.
func (h handles) is(handle []byte, fileid uint64) bool {
	was, ok := h[string(handle)]
	if !ok {
		if len(handle) > 0 && len(handle) <= nfs4.NFS4_FHSIZE && len(h) < maxHandles {
			h[string(handle)] = fileid
		}
		return true
	}
	return was == fileid
}

// handles checks the handles that a reply returns together with the number of the file.
func (j *Judge) handles(v *verdict.Judgement, r *Reply) {
	h := j.history(r.Clone)
	check := func(name []byte, handle []byte, fileid uint64) {
		if !h.handles.is(handle, fileid) {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.HandleShared, Detail: string(clip(name))})
		}
	}
	made := func(p *nfs3.PostOpFh3, a *nfs3.PostOpAttr) {
		if p.HandleFollows && a.AttributesFollow {
			check(nameOf(r.Op, -1), p.Handle.Data, a.Attributes.Fileid)
		}
	}
	if code, _ := StatusOf(r.Result); code != 0 && r.Op.Compound == nil {
		return
	}
	switch m := r.Result.(type) {
	case *nfs3.LOOKUP3res:
		if a := &m.Resok.ObjAttributes; a.AttributesFollow {
			check(nameOf(r.Op, -1), m.Resok.Object.Data, a.Attributes.Fileid)
		}
	case *nfs3.CREATE3res:
		made(&m.Resok.Obj, &m.Resok.ObjAttributes)
	case *nfs3.MKDIR3res:
		made(&m.Resok.Obj, &m.Resok.ObjAttributes)
	case *nfs3.SYMLINK3res:
		made(&m.Resok.Obj, &m.Resok.ObjAttributes)
	case *nfs3.MKNOD3res:
		made(&m.Resok.Obj, &m.Resok.ObjAttributes)
	case *nfs3.READDIRPLUS3res:
		dir := objectOf(r.Op, -1)
		for i := range m.Resok.Reply.Entries {
			if e := &m.Resok.Reply.Entries[i]; e.NameHandle.HandleFollows {
				// The entry's own number may be that of the directory below a mount.
				if a := &e.NameAttributes; a.AttributesFollow {
					check(e.Name, e.NameHandle.Handle.Data, a.Attributes.Fileid)
				}
				h.expected.Listed(dir, e.Name, e.NameHandle.Handle.Data)
			}
		}
	case *nfs4.CompoundRes:
		j.handles4(r, m, check)
	}
}

// handles4 checks a GETFH with a GETATTR of the same object, and listings with handles.
func (j *Judge) handles4(r *Reply, m *nfs4.CompoundRes, check func(name, handle []byte, fileid uint64)) {
	var handle []byte
	for i := range m.Ops {
		if code, _, _ := m.Ops[i].Status(); code != 0 {
			return
		}
		switch x := m.Ops[i].Body.(type) {
		case *nfs4.GETFH4res:
			handle = x.Resok4.Object
		case *nfs4.GETATTR4res:
			if handle == nil {
				continue
			}
			if a, err := x.Resok4.ObjAttributes.Attrs(); err == nil && a.Has(nfs4.FATTR4_FILEID) {
				check(nameOf(r.Op, i), handle, a.Fileid)
			}
		case *nfs4.READDIR4res:
			handle = nil
			for k := range x.Resok4.Reply.Entries {
				e := &x.Resok4.Reply.Entries[k]
				a, err := e.Attrs.Attrs()
				if err != nil || !a.Has(nfs4.FATTR4_FILEHANDLE) {
					continue
				}
				j.history(r.Clone).expected.Listed(objectOf(r.Op, i), e.Name, a.Filehandle)
				if a.Has(nfs4.FATTR4_FILEID) {
					check(e.Name, a.Filehandle, a.Fileid)
				}
			}
		default:
			if nfs4.NfsOpnum4(m.Ops[i].Number) != nfs4.OP_ACCESS {
				handle = nil // another object may be the current one
			}
		}
	}
}

// nameOf is the last name that an op has up to operation at.
func nameOf(o *plan.Op, at int) (name []byte) {
	in := func(list []plan.Field) {
		for i := range list {
			if list[i].Kind == plan.FieldName {
				name = list[i].Opaque()
			}
		}
	}
	in(o.Args)
	if o.Compound != nil {
		for i := 0; i <= at && i < len(o.Compound.Ops); i++ {
			in(o.Compound.Ops[i].Args)
		}
	}
	return name
}
