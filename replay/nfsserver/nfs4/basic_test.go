package nfs4

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

func TestReadWrite(t *testing.T) {
	for minor := uint32(1); minor <= 2; minor++ {
		r := newRig(t, Options{})
		s := r.mount("client", minor, 0)
		h, sid := s.create("o", "file", 3, 0)
		res := s.must(ok, s.do(putfh(h), write(sid, 0, "hello, world"), getattr(nfs4.FATTR4_SIZE)))
		if w := body[nfs4.WRITE4res](t, res).Resok4; w.Count != 12 || w.Committed != nfs4.FILE_SYNC4 {
			t.Errorf("%+v", w)
		}
		a, _ := body[nfs4.GETATTR4res](t, res).Resok4.ObjAttributes.Attrs()
		if a.Size != 12 {
			t.Errorf("size %d", a.Size)
		}
		res = s.must(ok, s.do(putfh(h), read(sid, 7, 100), read(sid, 0, 5)))
		first, second := res.Ops[2].Body.(*nfs4.READ4res).Resok4, res.Ops[3].Body.(*nfs4.READ4res).Resok4
		if string(first.Data.Inline) != "world" || !first.Eof || string(second.Data.Inline) != "hello" || second.Eof {
			t.Errorf("%q %v, %q %v", first.Data.Inline, first.Eof, second.Data.Inline, second.Eof)
		}
		c := body[nfs4.CLOSE4res](t, s.must(ok, s.do(putfh(h), closeOp(sid))))
		if c.OpenStateid.Seqid != 0xffffffff {
			t.Errorf("closed: %+v", c.OpenStateid)
		}
		s.must(nfs4.NFS4ERR_BAD_STATEID, s.do(putfh(h), read(sid, 0, 5)))
		s.must(nfs4.NFS4ERR_BAD_STATEID, s.do(putfh(h), closeOp(sid)))
	}
}
