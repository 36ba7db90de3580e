package v3

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// object finds the object of a procedure that answers post_op_attr and more. If
// that fails it has answered.
func (s *server) object(c *nfsserver.Call, fh []byte) (store.Handle, bool) {
	st := c.State.(*state)
	h, err := s.parse(fh)
	if err == nil {
		err = s.store.GetAttr(h, &st.attr)
	}
	if err != nil {
		fail(c, err)
		c.Out = xdr.AppendBool(c.Out, false)
		c.Send()
		return h, false
	}
	return h, true
}

func (s *server) fsstat(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.fsstatArgs) {
		return
	}
	h, found := s.object(c, st.fsstatArgs.Fsroot.Data)
	if !found {
		return
	}
	var full store.Statfs
	if err := s.store.Statfs(&full); err != nil {
		s.failAttr(c, err, h, &st.attr)
		return
	}
	ok(c)
	c.Out = s.postAttr(c.Out, &st.attr)
	for _, v := range []uint64{full.TotalBytes, full.FreeBytes, full.AvailBytes, full.TotalFiles, full.FreeFiles, full.AvailFiles} {
		c.Out = xdr.AppendUint64(c.Out, v)
	}
	put(c, 0) // invarsec: it may change at any time
	c.Send()
}

func (s *server) fsinfo(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.fsinfoArgs) {
		return
	}
	if _, found := s.object(c, st.fsinfoArgs.Fsroot.Data); !found {
		return
	}
	properties := uint32(nfs3.FSF3_HOMOGENEOUS | nfs3.FSF3_CANSETTIME)
	if s.info.HardLinks {
		properties |= nfs3.FSF3_LINK
	}
	if s.info.Symlinks {
		properties |= nfs3.FSF3_SYMLINK
	}
	ok(c)
	c.Out = s.postAttr(c.Out, &st.attr)
	for _, v := range []uint32{
		s.opt.MaxIO, s.opt.PreferredIO, ioMultiple,
		s.opt.MaxIO, s.opt.PreferredIO, ioMultiple, s.opt.PreferredDir,
	} {
		put(c, v)
	}
	c.Out = xdr.AppendUint64(c.Out, s.info.MaxFileSize)
	delta := toTime(s.info.TimeDelta)
	c.Out = delta.Append(c.Out)
	put(c, properties)
	c.Send()
}

// ioMultiple is rtmult and wtmult: sizes that are a multiple of it are handled
// best, in bytes.
const ioMultiple = 4096

func (s *server) pathconf(c *nfsserver.Call) {
	st := c.State.(*state)
	if !c.Decode(&st.pathconfArgs) {
		return
	}
	if _, found := s.object(c, st.pathconfArgs.Object.Data); !found {
		return
	}
	ok(c)
	c.Out = s.postAttr(c.Out, &st.attr)
	put(c, s.info.MaxLink)
	put(c, s.info.MaxName)
	c.Out = xdr.AppendBool(c.Out, true) // no_trunc: a name that is too long is an error
	c.Out = xdr.AppendBool(c.Out, s.info.ChownRestricted)
	c.Out = xdr.AppendBool(c.Out, s.info.CaseInsensitive)
	c.Out = xdr.AppendBool(c.Out, s.info.CasePreserving)
	c.Send()
}
