package v3

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// made answers CREATE, MKDIR, SYMLINK and MKNOD: the new object is in st.attr,
// what became of the directory in st.wcc.
func (s *server) made(c *nfsserver.Call, dir store.Handle, err error) {
	st := c.State.(*state)
	if err != nil {
		s.failWcc(c, err, dir, &st.attr)
		return
	}
	ok(c)
	c.Out = xdr.AppendBool(c.Out, true)
	c.Out = s.appendHandle(c.Out, st.attr.Handle)
	c.Out = s.postAttr(c.Out, &st.attr)
	c.Out = s.wcc(c.Out, &st.wcc)
	c.Send()
}

// newName finds the directory of an object to be made. "." and ".." exist.
func (s *server) newName(where *nfs3.Diropargs3) (store.Handle, error) {
	dir, err := s.parse(where.Dir.Data)
	if err == nil && dot(where.Name) {
		err = store.ErrExist
	}
	return dir, err
}

func (s *server) create(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.createArgs
	if !c.Decode(args) {
		return
	}
	dir, err := s.newName(&args.Where)
	if err == nil {
		st.how = store.Create{}
		switch args.How.Mode {
		case nfs3.UNCHECKED:
			st.how.Mode = store.Unchecked
			fillSet(&st.how.Set, &args.How.ObjAttributes)
		case nfs3.GUARDED:
			st.how.Mode = store.Guarded
			fillSet(&st.how.Set, &args.How.ObjAttributes)
		case nfs3.EXCLUSIVE:
			// The attributes come with a SETATTR (RFC 1813, section 3.3.8).
			st.how.Mode = store.Exclusive
			st.how.Verifier = binary.BigEndian.Uint64(args.How.Verf[:])
		default:
			c.Fail(garbage)
			return
		}
		_, err = s.store.Create(&c.Cred, dir, args.Where.Name, &st.how, &st.attr, &st.wcc)
	}
	s.made(c, dir, err)
}

func (s *server) mkdir(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.mkdirArgs
	if !c.Decode(args) {
		return
	}
	dir, err := s.newName(&args.Where)
	if err == nil {
		err = s.store.Mkdir(&c.Cred, dir, args.Where.Name, fillSet(&st.set, &args.Attributes), &st.attr, &st.wcc)
	}
	s.made(c, dir, err)
}

func (s *server) symlink(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.symlinkArgs
	if !c.Decode(args) {
		return
	}
	text, whole := c.Bytes(args.Symlink.SymlinkData)
	if !whole {
		c.Fail(garbage)
		return
	}
	dir, err := s.newName(&args.Where)
	if err == nil {
		err = s.store.Symlink(&c.Cred, dir, args.Where.Name, text, fillSet(&st.set, &args.Symlink.SymlinkAttributes), &st.attr, &st.wcc)
	}
	s.made(c, dir, err)
}

func (s *server) mknod(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.mknodArgs
	if !c.Decode(args) {
		return
	}
	dir, err := s.newName(&args.Where)
	if err == nil {
		var dev store.Device
		switch args.What.Type {
		case nfs3.NF3CHR, nfs3.NF3BLK:
			fillSet(&st.set, &args.What.Device.DevAttributes)
			dev = store.Device{Major: args.What.Device.Spec.Specdata1, Minor: args.What.Device.Spec.Specdata2}
		case nfs3.NF3SOCK, nfs3.NF3FIFO:
			fillSet(&st.set, &args.What.PipeAttributes)
		default:
			err = store.ErrBadType
		}
		if err == nil {
			err = s.store.Mknod(&c.Cred, dir, args.Where.Name, store.Type(args.What.Type), dev, &st.set, &st.attr, &st.wcc)
		}
	}
	s.made(c, dir, err)
}
