package readback

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// acl compares the access control lists of an object with those that SETACL has set.
func (r *reader) acl(id int, h, set []byte) error {
	var want nfsacl.Secattr
	var x xdr.Reader
	x.Reset(set, len(set))
	if want.Decode(&x); x.Failed() {
		return nil // none was set
	}
	fs, ok := r.fs.(interface {
		GetACL(ctx context.Context, handle []byte) (*nfsacl.Secattr, error)
	})
	if !ok {
		r.left("access control lists of NFSACL, which NFSv4 does not have", nil)
		return nil
	}
	have, err := fs.GetACL(r.ctx, h)
	if end := r.fatal(err); end != nil {
		return end
	}
	if err != nil || len(have.Aclent) == 0 {
		r.left("access control lists", err)
		return nil
	}
	expected.NormalACL(&want)
	expected.NormalACL(have)
	for _, l := range []struct {
		name       string
		mask       uint32
		want, have []nfsacl.Aclent
	}{{"acl", nfsacl.NA_ACL, want.Aclent, have.Aclent}, {"default acl", nfsacl.NA_DFACL, want.Dfaclent, have.Dfaclent}} {
		if want.Mask&l.mask == 0 {
			continue
		}
		r.out.Attributes++
		if was, now := aclText(l.want), aclText(l.have); was != now {
			r.field(r.path(id), l.name, now, was)
		}
	}
	return nil
}

// aclText is a list in the short text form of POSIX 1003.1e: "user::rw-,user:5:r--". Only named users and groups have a number.
func aclText(list []nfsacl.Aclent) string {
	var out []string
	for _, e := range list {
		kind, id := map[uint32]string{
			nfsacl.NA_USER_OBJ: "user", nfsacl.NA_USER: "user", nfsacl.NA_GROUP_OBJ: "group", nfsacl.NA_GROUP: "group",
			nfsacl.NA_CLASS_OBJ: "mask", nfsacl.NA_OTHER_OBJ: "other",
		}[e.Type&^nfsacl.NA_DEFAULT], ""
		if t := e.Type &^ nfsacl.NA_DEFAULT; t == nfsacl.NA_USER || t == nfsacl.NA_GROUP {
			id = fmt.Sprint(e.Id)
		}
		rights := []byte("---")
		for i, bit := range []uint32{nfsacl.NA_READ, nfsacl.NA_WRITE, nfsacl.NA_EXEC} {
			if e.Perm&bit != 0 {
				rights[i] = "rwx"[i]
			}
		}
		out = append(out, fmt.Sprintf("%s:%s:%s", kind, id, rights))
	}
	return strings.Join(out, ",")
}

// xattrs compares the extended attributes of an object that calls have set or removed.
func (r *reader) xattrs(id int, h []byte, want map[string]string) error {
	fs, ok := r.fs.(interface {
		GetXattr(ctx context.Context, handle []byte, name string) ([]byte, error)
	})
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !ok || r.fs.Version() != "4.2" {
			r.left("extended attributes, which only NFSv4.2 has", nil)
			continue
		}
		value, err := fs.GetXattr(r.ctx, h, name)
		if end := r.fatal(err); end != nil {
			return end
		}
		now := "" // it has none
		switch {
		case err == nil:
			now = plan.HashData(value)
		case !client.IsStatus(err, uint32(nfs4.NFS4ERR_NOXATTR)):
			r.left("extended attributes", err)
			continue
		}
		r.out.Attributes++
		switch path := r.path(id) + ": extended attribute " + name; {
		case now == want[name]:
		case now == "":
			r.wrong(path, verdict.Reason{Code: verdict.NameLost})
		case want[name] == "":
			r.wrong(path, verdict.Reason{Code: verdict.NameLeft})
		default:
			r.wrong(path, verdict.Reason{Code: verdict.DataDiffer, N: uint64(len(value))})
		}
	}
	return nil
}
