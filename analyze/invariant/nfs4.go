package invariant

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// session follows the sizes that sessions allow, and judges that of a reply.
func (c *Checker) session(args, result xdr.Message) {
	switch r := result.(type) {
	case *nfs4.CREATE_SESSION4res:
		if len(c.sessions) < maxSessions {
			c.sessions[r.CsrResok4.CsrSessionid] = uint64(r.CsrResok4.CsrForeChanAttrs.CaMaxresponsesize)
		}
	case *nfs4.DESTROY_SESSION4res:
		if a, ok := args.(*nfs4.DESTROY_SESSION4args); ok {
			delete(c.sessions, a.DsaSessionid)
		}
	case *nfs4.SEQUENCE4res:
		// RFC 8881, section 2.10.6.4
		if most := c.sessions[r.SrResok4.SrSessionid]; most > 0 && c.x.Bytes > most {
			c.add(Breach{Kind: Contradiction, Why: fmt.Sprintf("a reply of %d bytes, of which its session allows %d: NFS4ERR_REP_TOO_BIG says so", c.x.Bytes, most)})
		}
	}
}

// operation judges one operation of a COMPOUND that succeeded. directory is the current file before it.
func (c *Checker) operation(args, result xdr.Message, directory []byte) {
	switch r := result.(type) {
	case *nfs4.CREATE_SESSION4res, *nfs4.DESTROY_SESSION4res, *nfs4.SEQUENCE4res:
		c.session(args, result)
	case *nfs4.GETATTR4res:
		if a, ok := args.(*nfs4.GETATTR4args); ok {
			c.subset(r.Resok4.ObjAttributes.Attrmask.Bitmap4, a.AttrRequest.Bitmap4)
			c.attributes(directory, &r.Resok4.ObjAttributes)
		}
	case *nfs4.READDIR4res:
		a, ok := args.(*nfs4.READDIR4args)
		if !ok {
			return
		}
		list := r.Resok4.Reply.Entries
		c.page(directory, a.Cookie, len(list), func(i int) uint64 { return list[i].Cookie }, r.Resok4.Reply.Eof)
		c.fits(&r.Resok4, a.Maxcount, 0)
		for i := range list {
			if !c.subset(list[i].Attrs.Attrmask.Bitmap4, a.AttrRequest.Bitmap4) {
				return
			}
		}
	case *nfs4.SETATTR4res:
		if a, ok := args.(*nfs4.SETATTR4args); ok {
			asked := a.ObjAttributes.Attrmask.Bitmap4
			c.subset(r.Attrsset.Bitmap4, asked)
			for n := asked.Next(0); n >= 0; n = asked.Next(n + 1) {
				if !r.Attrsset.Has(uint32(n)) {
					c.add(Breach{Kind: NotSet, Attribute: uint32(n)})
					return
				}
			}
		}
	case *nfs4.CREATE4res:
		if a, ok := args.(*nfs4.CREATE4args); ok {
			c.subset(r.Resok4.Attrset.Bitmap4, a.Createattrs.Attrmask.Bitmap4)
			c.changed(directory, &r.Resok4.Cinfo, true)
		}
	case *nfs4.OPEN4res:
		a, ok := args.(*nfs4.OPEN4args)
		if !ok {
			return
		}
		how := &a.Openhow
		switch {
		case how.Opentype != nfs4.OPEN4_CREATE:
			c.subset(r.Resok4.Attrset.Bitmap4, nil)
		case how.How.Mode == nfs4.UNCHECKED4 || how.How.Mode == nfs4.GUARDED4: // exclusive creates store a verifier in attributes
			c.subset(r.Resok4.Attrset.Bitmap4, how.How.Createattrs.Attrmask.Bitmap4)
		}
		if a.Claim.Claim == nfs4.CLAIM_NULL {
			c.changed(directory, &r.Resok4.Cinfo, how.Opentype == nfs4.OPEN4_CREATE && how.How.Mode == nfs4.GUARDED4)
		}
	case *nfs4.REMOVE4res:
		c.changed(directory, &r.Resok4.Cinfo, true)
	case *nfs4.LINK4res:
		c.changed(directory, &r.Resok4.Cinfo, true)
	case *nfs4.RENAME4res: // does nothing if both names are links of one file
		c.changed(c.walk.Saved.Handle, &r.Resok4.SourceCinfo, false)
		c.changed(directory, &r.Resok4.TargetCinfo, false)
	}
}

// subset judges whether only requested attributes are present.
func (c *Checker) subset(have, asked nfs4.Bitmap4) bool {
	c.judged |= 1 << NotAsked
	for i := range len(have) / 4 {
		if more := have.Word(i) &^ asked.Word(i); more != 0 {
			n := i * 32
			for more&1 == 0 {
				more, n = more>>1, n+1
			}
			c.add(Breach{Kind: NotAsked, Attribute: uint32(n)})
			return false
		}
	}
	return true
}

// attributes compares attributes with earlier ones of the file.
func (c *Checker) attributes(handle []byte, f *nfs4.Fattr4) {
	if len(handle) == 0 {
		return
	}
	a := &c.attrs
	if a.Decode(f) != nil || a.Has(nfs4.FATTR4_RDATTR_ERROR) && a.RdattrError != nfs4.NFS4_OK {
		return
	}
	var x facts
	number := func(n int, v uint64) {
		if a.Has(int(attributes[n])) {
			x.set(n, v)
		}
	}
	name := func(n int, s []byte) {
		if a.Has(int(attributes[n])) {
			x.set(n, sum(s))
		}
	}
	number(version, a.Change)
	number(kind, uint64(a.Type))
	number(fileid, a.Fileid)
	number(size, a.Size)
	number(mode, uint64(a.Mode))
	number(links, uint64(a.Numlinks))
	name(owner, a.Owner)
	name(group, a.OwnerGroup)
	if x.has != 0 {
		o, fresh := c.object(handle)
		c.observe(o, fresh, &x)
	}
}
