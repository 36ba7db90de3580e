package expected

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
)

// NormalACL brings the lists of NFSACL into a form that can be compared: it sorts entries by type and ID, and adds a mask equal to the group where
// there is none. It reports whether that has changed anything.
func NormalACL(s *nfsacl.Secattr) (changed bool) {
	for _, l := range []struct {
		list  *[]nfsacl.Aclent
		count *uint32
		flag  uint32
	}{{&s.Aclent, &s.Aclcnt, 0}, {&s.Dfaclent, &s.Dfaclcnt, nfsacl.NA_DEFAULT}} {
		if n := len(*l.list); n == 3 && *l.count == 3 {
			for _, e := range *l.list {
				if e.Type == nfsacl.NA_GROUP_OBJ|l.flag {
					*l.list = append(*l.list, nfsacl.Aclent{Type: nfsacl.NA_CLASS_OBJ | l.flag, Perm: e.Perm})
					*l.count = 4
					changed = true
				}
			}
		}
		order := func(a, b nfsacl.Aclent) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Id, b.Id)) }
		if !slices.IsSortedFunc(*l.list, order) {
			slices.SortFunc(*l.list, order)
			changed = true
		}
	}
	return changed
}
