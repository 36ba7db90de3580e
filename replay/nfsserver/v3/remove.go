package v3

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

func (s *server) remove(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.removeArgs) {
		return
	}
	object := &st.removeArgs.Object
	dir, err := s.parse(object.Dir.Data)
	switch {
	case err != nil:
	case dot(object.Name):
		err = store.ErrIsDir
	default:
		err = s.store.Remove(&c.Cred, dir, object.Name, &st.wcc)
	}
	s.removed(c, dir, err)
}

func (s *server) rmdir(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.rmdirArgs) {
		return
	}
	object := &st.rmdirArgs.Object
	dir, err := s.parse(object.Dir.Data)
	switch {
	case err != nil:
	case string(object.Name) == "..":
		err = store.ErrExist // RFC 1813, section 3.3.13
	default:
		err = s.store.Rmdir(&c.Cred, dir, object.Name, &st.wcc)
	}
	s.removed(c, dir, err)
}

func (s *server) removed(c *nfsserver.Call, dir store.Handle, err error) {
	st := c.State.(*state)
	if err != nil {
		s.failWcc(c, err, dir, &st.attr)
		return
	}
	ok(c)
	c.Out = s.wcc(c.Out, &st.wcc)
	c.Send()
}

func (s *server) rename(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.renameArgs
	if !c.Decode(args) {
		return
	}
	from, err := s.parse(args.From.Dir.Data)
	to, err2 := s.parse(args.To.Dir.Data)
	if err == nil {
		err = err2
	}
	if err == nil {
		err = s.store.Rename(&c.Cred, from, args.From.Name, to, args.To.Name, &st.wcc, &st.wcc2)
	}
	if err != nil {
		fail(c, err)
		c.Out = s.wccAfter(c.Out, from, &st.attr)
		c.Out = s.wccAfter(c.Out, to, &st.attr)
		c.Send()
		return
	}
	ok(c)
	c.Out = s.wcc(c.Out, &st.wcc)
	c.Out = s.wcc(c.Out, &st.wcc2)
	c.Send()
}

func (s *server) link(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.linkArgs
	if !c.Decode(args) {
		return
	}
	h, err := s.parse(args.File.Data)
	dir, err2 := s.newName(&args.Link)
	if err == nil {
		err = err2
	}
	if err == nil {
		err = s.store.Link(&c.Cred, h, dir, args.Link.Name, &st.attr, &st.wcc)
	}
	if err != nil {
		if err == store.ErrIsDir {
			err = store.ErrInval // RFC 1813 has no NFS3ERR_ISDIR for LINK
		}
		fail(c, err)
		c.Out = s.postOp(c.Out, h, &st.attr)
		c.Out = s.wccAfter(c.Out, dir, &st.attr)
		c.Send()
		return
	}
	put(c, uint32(nfs3.NFS3_OK))
	c.Out = s.postAttr(c.Out, &st.attr)
	c.Out = s.wcc(c.Out, &st.wcc)
	c.Send()
}
