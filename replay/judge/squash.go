package judge

import (
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// A server that squashes root takes user 0 for nobody: files that root makes belong to user nobody, and root has the rights of others.

// anonymous are the users and groups that servers put in the place of root, as numbers and names.
var anonymous = []string{"65534", "4294967294", "60001", "nobody", "nogroup", "nfsnobody"}

// squashes reports whether an owner or a group was root's in the capture and is nobody's here. path leads to the field.
func squashes(path []string, was, now string) bool {
	switch path[len(path)-1] {
	case "uid", "gid", "owner", "owner_group":
	case "id": // of an entry of an access control list
		if len(path) < 2 || !strings.Contains(path[len(path)-2], "aclent") {
			return false
		}
	default:
		return false
	}
	bare := func(s string) string {
		s, _, _ = strings.Cut(strings.Trim(s, `"`), "@")
		return s
	}
	was = bare(was)
	return (was == "0" || was == "root") && slices.Contains(anonymous, bare(now))
}

// squashed explains refusals to root, and rights that it lacks, where the server has shown that it squashes root.
func squashed(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	h := j.history(r.Clone)
	if h.squash == "" || !j.root(r.Op) {
		return verdict.Reason{}, false
	}
	for i := range v.Reasons {
		d := &v.Reasons[i]
		switch {
		case !differs(d.Code):
		case d.Code == verdict.Fails || d.Code == verdict.StatusDiffers:
			code, _ := StatusOf(r.Result)
			if st := nfs4.Nfsstat4(code); st != nfs4.NFS4ERR_ACCESS && st != nfs4.NFS4ERR_PERM {
				return verdict.Reason{}, false
			}
		case d.Code != verdict.FieldDiffers || d.At.Field != "access":
			return verdict.Reason{}, false
		}
	}
	return verdict.Reason{Code: verdict.Squashed, Now: h.squash}, true
}

// root reports whether the captured call was made by user 0.
func (j *Judge) root(o *plan.Op) bool {
	c := o.Credential
	return c > 0 && c <= len(j.load.Tables.Credentials) && j.load.Tables.Credentials[c-1].Flavor == "sys" && j.load.Tables.Credentials[c-1].UID == 0
}

// Changed notes that something was changed on the server, so that it is not read-only.
func (j *Judge) Changed(clone int) { j.history(clone).changed = true }

// readOnly explains errors and missing access rights of a read-only server: one that answers ROFS, and on which the run has changed nothing so far.
func readOnly(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	h := j.history(r.Clone)
	if code, _ := StatusOf(r.Result); nfs4.Nfsstat4(code) == nfs4.NFS4ERR_ROFS { // NFS3ERR_ROFS has the same number
		h.refusing = true
		return verdict.Reason{Code: verdict.ReadOnly}, !h.changed
	}
	for i := range v.Reasons {
		if d := &v.Reasons[i]; differs(d.Code) && (d.Code != verdict.FieldDiffers || d.At.Field != "access") {
			return verdict.Reason{}, false
		}
	}
	return verdict.Reason{Code: verdict.ReadOnly}, h.refusing && !h.changed
}
