package v3

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
)

func (s *server) read(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.readArgs
	if !c.Decode(args) {
		return
	}
	h, err := s.parse(args.File.Data)
	r := c.Read()
	if err == nil {
		count := c.MaxItem(0, min(args.Count, s.opt.MaxIO))
		err = s.store.Read(&c.Cred, h, args.Offset, count, r)
	}
	if err != nil {
		s.failAttr(c, err, h, &st.attr)
		return
	}
	ok(c)
	c.Out = s.postAttr(c.Out, &r.Attr)
	put(c, uint32(len(r.Data)))
	c.Out = xdr.AppendBool(c.Out, r.EOF)
	c.AddData(r.Data)
	c.Send()
}

func (s *server) write(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.writeArgs
	if !c.Decode(args) {
		return
	}
	data, whole := c.Bytes(args.Data)
	if !whole || uint64(args.Count) != uint64(len(data)) || args.Stable > nfs3.FILE_SYNC {
		c.Fail(garbage)
		return
	}
	data = data[:min(len(data), int(s.opt.MaxIO))]
	h, err := s.parse(args.File.Data)
	if err == nil {
		err = s.store.Write(&c.Cred, h, args.Offset, data, args.Stable != nfs3.UNSTABLE, &st.wcc)
	}
	if err != nil {
		s.failWcc(c, err, h, &st.attr)
		return
	}
	ok(c)
	c.Out = s.wcc(c.Out, &st.wcc)
	put(c, uint32(len(data)))
	put(c, uint32(args.Stable))
	c.Out = append(c.Out, s.verifier[:]...)
	c.Send()
}

func (s *server) commit(c *nfsserver.Call) {
	st := c.State.(*state)
	args := &st.commitArgs
	if !c.Decode(args) {
		return
	}
	h, err := s.parse(args.File.Data)
	if err == nil {
		err = s.store.Commit(&c.Cred, h, args.Offset, uint64(args.Count), &st.wcc)
	}
	if err != nil {
		s.failWcc(c, err, h, &st.attr)
		return
	}
	ok(c)
	c.Out = s.wcc(c.Out, &st.wcc)
	c.Out = append(c.Out, s.verifier[:]...)
	c.Send()
}
