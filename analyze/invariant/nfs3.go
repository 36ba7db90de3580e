package invariant

import "github.com/rpcrdma/toolkit/decode/nfs/nfs3"

// nfs3 judges results of NFSv3 that succeeded.
func (c *Checker) nfs3() {
	switch r := c.x.Result.(type) {
	case *nfs3.GETATTR3res:
		if a, ok := c.x.Args.(*nfs3.GETATTR3args); ok && r.Status == nfs3.NFS3_OK {
			c.file3(a.Object.Data, &r.Resok.ObjAttributes)
		}
	case *nfs3.SETATTR3res:
		if a, ok := c.x.Args.(*nfs3.SETATTR3args); ok && r.Status == nfs3.NFS3_OK {
			c.wcc(a.Object.Data, &r.Resok.ObjWcc)
		}
	case *nfs3.LOOKUP3res:
		if a, ok := c.x.Args.(*nfs3.LOOKUP3args); ok && r.Status == nfs3.NFS3_OK {
			c.post(r.Resok.Object.Data, &r.Resok.ObjAttributes)
			c.post(a.What.Dir.Data, &r.Resok.DirAttributes)
		}
	case *nfs3.ACCESS3res:
		if a, ok := c.x.Args.(*nfs3.ACCESS3args); ok && r.Status == nfs3.NFS3_OK {
			c.post(a.Object.Data, &r.Resok.ObjAttributes)
		}
	case *nfs3.READ3res:
		if a, ok := c.x.Args.(*nfs3.READ3args); ok && r.Status == nfs3.NFS3_OK {
			c.post(a.File.Data, &r.Resok.FileAttributes)
		}
	case *nfs3.WRITE3res:
		if a, ok := c.x.Args.(*nfs3.WRITE3args); ok && r.Status == nfs3.NFS3_OK {
			c.wcc(a.File.Data, &r.Resok.FileWcc)
		}
	case *nfs3.COMMIT3res:
		if a, ok := c.x.Args.(*nfs3.COMMIT3args); ok && r.Status == nfs3.NFS3_OK {
			c.wcc(a.File.Data, &r.Resok.FileWcc)
		}
	default:
		c.names3()
		c.pages3()
	}
}

// pages3 judges pages of directories.
func (c *Checker) pages3() {
	switch r := c.x.Result.(type) {
	case *nfs3.READDIR3res:
		if a, ok := c.x.Args.(*nfs3.READDIR3args); ok && r.Status == nfs3.NFS3_OK {
			list := r.Resok.Reply.Entries
			c.post(a.Dir.Data, &r.Resok.DirAttributes)
			c.page(a.Dir.Data, a.Cookie, len(list), func(i int) uint64 { return list[i].Cookie }, r.Resok.Reply.Eof)
			c.fits(&r.Resok, a.Count, besideEntries)
		}
	case *nfs3.READDIRPLUS3res:
		if a, ok := c.x.Args.(*nfs3.READDIRPLUS3args); ok && r.Status == nfs3.NFS3_OK {
			list := r.Resok.Reply.Entries
			c.post(a.Dir.Data, &r.Resok.DirAttributes)
			c.page(a.Dir.Data, a.Cookie, len(list), func(i int) uint64 { return list[i].Cookie }, r.Resok.Reply.Eof)
			c.fits(&r.Resok, a.Maxcount, besideEntries)
		}
	}
}

// names3 judges results of the procedures that change directories.
func (c *Checker) names3() {
	switch r := c.x.Result.(type) {
	case *nfs3.CREATE3res:
		if a, ok := c.x.Args.(*nfs3.CREATE3args); ok && r.Status == nfs3.NFS3_OK {
			c.made3(a.Where.Dir.Data, &r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc)
		}
	case *nfs3.MKDIR3res:
		if a, ok := c.x.Args.(*nfs3.MKDIR3args); ok && r.Status == nfs3.NFS3_OK {
			c.made3(a.Where.Dir.Data, &r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc)
		}
	case *nfs3.SYMLINK3res:
		if a, ok := c.x.Args.(*nfs3.SYMLINK3args); ok && r.Status == nfs3.NFS3_OK {
			c.made3(a.Where.Dir.Data, &r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc)
		}
	case *nfs3.MKNOD3res:
		if a, ok := c.x.Args.(*nfs3.MKNOD3args); ok && r.Status == nfs3.NFS3_OK {
			c.made3(a.Where.Dir.Data, &r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc)
		}
	case *nfs3.REMOVE3res:
		if a, ok := c.x.Args.(*nfs3.REMOVE3args); ok && r.Status == nfs3.NFS3_OK {
			c.wcc(a.Object.Dir.Data, &r.Resok.DirWcc)
		}
	case *nfs3.RMDIR3res:
		if a, ok := c.x.Args.(*nfs3.RMDIR3args); ok && r.Status == nfs3.NFS3_OK {
			c.wcc(a.Object.Dir.Data, &r.Resok.DirWcc)
		}
	case *nfs3.RENAME3res:
		if a, ok := c.x.Args.(*nfs3.RENAME3args); ok && r.Status == nfs3.NFS3_OK {
			c.wcc(a.From.Dir.Data, &r.Resok.FromdirWcc)
			c.wcc(a.To.Dir.Data, &r.Resok.TodirWcc)
		}
	case *nfs3.LINK3res:
		if a, ok := c.x.Args.(*nfs3.LINK3args); ok && r.Status == nfs3.NFS3_OK {
			c.post(a.File.Data, &r.Resok.FileAttributes)
			c.wcc(a.Link.Dir.Data, &r.Resok.LinkdirWcc)
		}
	}
}

func (c *Checker) made3(directory []byte, made *nfs3.PostOpFh3, attributes *nfs3.PostOpAttr, wcc *nfs3.WccData) {
	if made.HandleFollows {
		c.post(made.Handle.Data, attributes)
	}
	c.wcc(directory, wcc)
}

// wcc judges weak cache consistency data: attributes before and after a call.
func (c *Checker) wcc(handle []byte, w *nfs3.WccData) {
	if !w.Before.AttributesFollow && !w.After.AttributesFollow {
		return
	}
	o, fresh := c.object(handle)
	if o == nil {
		return
	}
	if w.Before.AttributesFollow && o.number != c.number && o.known(version) && c.x.Sent > o.replied && !c.x.Again {
		c.earlierTime(o.fact[version], nanoseconds(w.Before.Attributes.Ctime))
	}
	if w.After.AttributesFollow {
		f := facts3(&w.After.Attributes)
		c.observe(o, fresh, &f)
	}
}

func (c *Checker) post(handle []byte, p *nfs3.PostOpAttr) {
	if p.AttributesFollow {
		c.file3(handle, &p.Attributes)
	}
}

// file3 compares attributes with earlier ones of the file.
func (c *Checker) file3(handle []byte, a *nfs3.Fattr3) {
	o, fresh := c.object(handle)
	f := facts3(a)
	c.observe(o, fresh, &f)
}

func nanoseconds(t nfs3.Nfstime3) uint64 { return uint64(t.Seconds)*1e9 + uint64(t.Nseconds) }

func facts3(a *nfs3.Fattr3) facts {
	return facts{1<<factCount - 1, [factCount]uint64{
		version: nanoseconds(a.Ctime), kind: uint64(a.Type), fileid: a.Fileid, size: a.Size, mode: uint64(a.Mode), links: uint64(a.Nlink), owner: uint64(a.Uid), group: uint64(a.Gid),
	}}
}
