package planner

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

func (s *scene) acl3(procedure uint32, args, result xdr.Message) {
	s.program = nfsacl.NFS_ACL_PROGRAM
	s.call(3, procedure, args, result)
	s.program = 0
}

func (s *scene) getacl(h string, acl nfsacl.Secattr) {
	s.acl3(1, &nfsacl.GETACL3args{Fh: fh3(h), Mask: nfsacl.NA_ACL}, &nfsacl.GETACL3res{Resok: nfsacl.GETACL3resok{Acl: acl}})
}

// TestACL plans calls of NFSACL: with the objects of NFSv3, after the calls that they depend on,
// and with the lists from before the capture.
func TestACL(t *testing.T) {
	const uo, u, g, m, o = nfsacl.NA_USER_OBJ, nfsacl.NA_USER, nfsacl.NA_GROUP_OBJ, nfsacl.NA_CLASS_OBJ, nfsacl.NA_OTHER_OBJ
	list := func(e ...nfsacl.Aclent) nfsacl.Secattr {
		return nfsacl.Secattr{Mask: nfsacl.NA_ACL, Aclcnt: uint32(len(e)), Aclent: e}
	}
	minimal := list(nfsacl.Aclent{Type: uo, Perm: 6}, nfsacl.Aclent{Type: g, Perm: 4}, nfsacl.Aclent{Type: m, Perm: 4}, nfsacl.Aclent{Type: o})
	more := list(nfsacl.Aclent{Type: uo, Perm: 6}, nfsacl.Aclent{Type: u, Id: 7, Perm: 6}, nfsacl.Aclent{Type: g, Perm: 4}, nfsacl.Aclent{Type: m, Perm: 6}, nfsacl.Aclent{Type: o})
	s := newScene(t)
	s.acl3(0, xdr.NewVoid(), xdr.NewVoid())                                                                  // 1
	s.lookup3("root", "plain", "a")                                                                          // 2
	s.lookup3("root", "listed", "b")                                                                         // 3
	s.lookup3("root", "changed", "c")                                                                        // 4
	s.create3("root", "new", "d")                                                                            // 5
	s.getacl("a", minimal)                                                                                   // 6
	s.getacl("b", more)                                                                                      // 7
	s.acl3(2, &nfsacl.SETACL3args{Fh: fh3("c"), Acl: more}, &nfsacl.SETACL3res{})                            // 8
	s.getacl("c", more)                                                                                      // 9
	s.getacl("d", more)                                                                                      // 10
	s.acl3(3, &nfsacl.GETXATTRDIR3args{Fh: fh3("a")}, &nfsacl.GETXATTRDIR3res{Status: nfs3.NFS3ERR_NOTSUPP}) // left out
	l := s.plan()
	l.want(t, "ops", len(l.ops), 10)
	l.want(t, "role of NULL", l.ops[0].Role, plan.Ping)
	for id, path := range map[int]string{6: "plain", 7: "listed", 8: "changed", 9: "changed", 10: "new"} {
		op := l.ops[id-1]
		l.want(t, "object of op", handle(op), l.object(t, path).ID)
		l.want(t, "modifies", op.Modifies, id == 8)
		l.want(t, "class", op.Class, plan.Exact)
		l.want(t, "program", op.Program, uint32(nfsacl.NFS_ACL_PROGRAM))
	}
	l.waits(t, 9, 8)
	l.waits(t, 10, 5)
	for path, acl := range map[string][]byte{"plain": nil, "listed": more.Append(nil), "changed": nil, "new": nil} {
		if got := l.object(t, path).ACL; !bytes.Equal(got, acl) {
			t.Errorf("%s: %x, want %x", path, got, acl)
		}
	}
}
