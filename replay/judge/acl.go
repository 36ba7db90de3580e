package judge

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/expected"
)

// normalACL brings the lists of two results of GETACL into one form, if they differ. It reports whether that has changed anything.
func normalACL(want, have xdr.Message) bool {
	a, ok := want.(*nfsacl.GETACL3res)
	if !ok {
		return false
	}
	b, ok := have.(*nfsacl.GETACL3res)
	if !ok || a.Status != 0 || b.Status != 0 {
		return false
	}
	x, y := &a.Resok.Acl, &b.Resok.Acl
	if slices.Equal(x.Aclent, y.Aclent) && slices.Equal(x.Dfaclent, y.Dfaclent) {
		return false
	}
	m, n := expected.NormalACL(x), expected.NormalACL(y)
	return m || n
}

// keepsNone reports whether GETACL shows that a server keeps no access control lists, though the captured one did: it returns success
// and no entry, not even those of the mode.
func keepsNone(want, have xdr.Message) (is, modeOnly bool) {
	a, ok := want.(*nfsacl.GETACL3res)
	if !ok {
		return false, false
	}
	b, ok := have.(*nfsacl.GETACL3res)
	if !ok || a.Status != 0 || b.Status != 0 {
		return false, false
	}
	x, y := &a.Resok.Acl, &b.Resok.Acl
	none := func(l *nfsacl.Secattr) bool {
		return l.Aclcnt == 0 && l.Dfaclcnt == 0 && len(l.Aclent) == 0 && len(l.Dfaclent) == 0
	}
	if none(x) || !none(y) {
		return false, false
	}
	named := func(e nfsacl.Aclent) bool { return e.Type == nfsacl.NA_USER || e.Type == nfsacl.NA_GROUP }
	modeOnly = x.Aclcnt <= minimalACL && x.Dfaclcnt == 0 && len(x.Dfaclent) == 0 && !slices.ContainsFunc(x.Aclent, named)
	return true, modeOnly
}

// minimalACL is how many entries a list has at most that says no more than a mode: owner, group, mask, others.
const minimalACL = 4
