package v3

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

func put(c *nfsserver.Call, v uint32) { c.Out = xdr.AppendUint32(c.Out, v) }

// fail starts the reply of a procedure that has failed.
func fail(c *nfsserver.Call, err error) { put(c, uint32(Status(err))) }

// ok starts the reply of one that has not.
func ok(c *nfsserver.Call) { put(c, uint32(nfs3.NFS3_OK)) }

// failAttr answers with an error and post_op_attr.
func (s *server) failAttr(c *nfsserver.Call, err error, h store.Handle, a *store.Attr) {
	fail(c, err)
	c.Out = s.postOp(c.Out, h, a)
	c.Send()
}

// failWcc answers with an error and wcc_data.
func (s *server) failWcc(c *nfsserver.Call, err error, h store.Handle, a *store.Attr) {
	fail(c, err)
	c.Out = s.wccAfter(c.Out, h, a)
	c.Send()
}

func (s *server) getattr(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.getattrArgs) {
		return
	}
	h, err := s.parse(st.getattrArgs.Object.Data)
	if err == nil {
		err = s.store.GetAttr(h, &st.attr)
	}
	if err != nil {
		fail(c, err)
		c.Send()
		return
	}
	ok(c)
	c.Out = s.appendAttr(c.Out, &st.attr)
	c.Send()
}

func (s *server) setattr(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.setattrArgs
	if !c.Decode(args) {
		return
	}
	h, err := s.parse(args.Object.Data)
	if err == nil {
		set := fillSet(&st.set, &args.NewAttributes)
		if args.Guard.Check {
			st.guard = store.Time{Sec: int64(args.Guard.ObjCtime.Seconds), Nsec: args.Guard.ObjCtime.Nseconds}
			set.Guard = &st.guard
		}
		err = s.store.SetAttr(&c.Cred, h, set, &st.wcc)
	}
	if err != nil {
		s.failWcc(c, err, h, &st.attr)
		return
	}
	ok(c)
	c.Out = s.wcc(c.Out, &st.wcc)
	c.Send()
}

func (s *server) access(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.accessArgs
	if !c.Decode(args) {
		return
	}
	const known = nfs3.ACCESS3_READ | nfs3.ACCESS3_LOOKUP | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND | nfs3.ACCESS3_DELETE | nfs3.ACCESS3_EXECUTE
	h, err := s.parse(args.Object.Data)
	var granted store.AccessMask
	if err == nil {
		granted, err = s.store.Access(&c.Cred, h, store.AccessMask(args.Access&known))
	}
	if err != nil {
		s.failAttr(c, err, h, &st.attr)
		return
	}
	ok(c)
	c.Out = s.postOp(c.Out, h, &st.attr)
	put(c, uint32(granted))
	c.Send()
}

func (s *server) lookup(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.lookupArgs
	if !c.Decode(args) {
		return
	}
	dir, err := s.parse(args.What.Dir.Data)
	if err == nil {
		err = s.find(c, dir, args.What.Name, &st.attr)
	}
	if err != nil {
		s.failAttr(c, err, dir, &st.attr2)
		return
	}
	ok(c)
	c.Out = s.appendHandle(c.Out, st.attr.Handle)
	c.Out = s.postAttr(c.Out, &st.attr)
	c.Out = s.postOp(c.Out, dir, &st.attr2)
	c.Send()
}

// find is Store.Lookup with "." and "..".
func (s *server) find(c *nfsserver.Call, dir store.Handle, name []byte, a *store.Attr) error {
	if !dot(name) {
		return s.store.Lookup(&c.Cred, dir, name, a)
	}
	up, err := s.store.Parent(&c.Cred, dir)
	if err != nil {
		return err
	}
	if len(name) == 1 {
		up = dir
	}
	return s.store.GetAttr(up, a)
}

func (s *server) readlink(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.readlinkArgs) {
		return
	}
	h, err := s.parse(st.readlinkArgs.Symlink.Data)
	if err == nil {
		st.text, err = s.store.Readlink(&c.Cred, h, st.text[:0])
	}
	if err != nil {
		s.failAttr(c, err, h, &st.attr)
		return
	}
	ok(c)
	c.Out = s.postOp(c.Out, h, &st.attr)
	// The text stays with the call until the transport has released the reply.
	c.AddData(st.text)
	c.Send()
}
