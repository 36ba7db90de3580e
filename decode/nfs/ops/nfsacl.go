package ops

import "github.com/rpcrdma/toolkit/decode/nfs/nfsacl"

// aclRoom is enough for two lists of 1024 entries of 12 bytes (NFS_ACL_MAX_ENTRIES).
const aclRoom = 28 << 10

// acls2 and acls3 have the procedures of NFSACL. GETXATTRDIR can make the directory that it
// returns.
var acls2 = table{
	nfsacl.ACLPROC2_NULL:    {Class: Nothing},
	nfsacl.ACLPROC2_GETACL:  {Class: Nothing, Reply: Reply{Room: aclRoom}},
	nfsacl.ACLPROC2_SETACL:  {Class: Changes, act: of(func(m *nfsacl.SETACL2args, a *Act) { a.object(m.Fh[:]) })},
	nfsacl.ACLPROC2_GETATTR: {Class: Nothing},
	nfsacl.ACLPROC2_ACCESS:  {Class: Nothing},
	nfsacl.ACLPROC2_GETXATTRDIR: {Class: Changes, act: of(func(m *nfsacl.GETXATTRDIR2args, a *Act) {
		if a.object(m.Fh[:]); !m.Create {
			a.Class = Nothing
		}
	})},
}

var acls3 = table{
	nfsacl.ACLPROC3_NULL: {Class: Nothing},
	nfsacl.ACLPROC3_GETACL: {Class: Nothing, Reply: Reply{Room: aclRoom},
		act: of(func(m *nfsacl.GETACL3args, a *Act) { a.object(m.Fh.Data) })},
	nfsacl.ACLPROC3_SETACL: {Class: Changes, act: of(func(m *nfsacl.SETACL3args, a *Act) { a.object(m.Fh.Data) })},
	nfsacl.ACLPROC3_GETXATTRDIR: {Class: Changes, act: of(func(m *nfsacl.GETXATTRDIR3args, a *Act) {
		if a.object(m.Fh.Data); !m.Create {
			a.Class = Nothing
		}
	})},
}
