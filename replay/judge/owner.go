package judge

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// maxOthers bounds the objects of other users that are known.
const maxOthers = 1 << 16

// owned notes the objects that a call of a Kerberos principal has made. It was replayed with another credential, so that they belong
// to another user than captured.
func (j *Judge) owned(r *Reply) {
	o := r.Op
	if code, _ := StatusOf(r.Result); code != 0 || r.RPC != "" || !j.principal(o) {
		return
	}
	h := j.history(r.Clone)
	for i := range o.Binds {
		b := &o.Binds[i]
		if b.Kind != plan.FieldHandle || b.Ref <= 0 || b.Ref > len(j.load.Tables.Objects) || len(h.others) >= maxOthers {
			continue
		}
		if j.load.Tables.Objects[b.Ref-1].Origin == plan.Created {
			h.others[b.Ref] = true
		}
	}
}

// principal reports whether a Kerberos principal made the captured call.
func (j *Judge) principal(o *plan.Op) bool {
	c := o.Credential
	return c > 0 && c <= len(j.load.Tables.Credentials) && j.load.Tables.Credentials[c-1].Flavor == "gss"
}

// otherUser explains owners, and refusals to others, of objects that a Kerberos principal made in the capture.
func otherUser(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	h := j.history(r.Clone)
	if len(h.others) == 0 || j.principal(r.Op) {
		return verdict.Reason{}, false
	}
	for i := range v.Reasons {
		d := &v.Reasons[i]
		switch {
		case !differs(d.Code):
		case d.Code == verdict.Fails || d.Code == verdict.StatusDiffers:
			code, _ := StatusOf(r.Result)
			if st := nfs4.Nfsstat4(code); st != nfs4.NFS4ERR_ACCESS && st != nfs4.NFS4ERR_PERM || !j.touches(r.Op, h.others) {
				return verdict.Reason{}, false
			}
		case d.Code != verdict.FieldDiffers || !ownership(d.At.Field) || !h.others[j.describes(r, &d.At)]:
			return verdict.Reason{}, false
		}
	}
	return verdict.Reason{Code: verdict.Planned, Detail: "a Kerberos principal made the object, and here another user"}, true
}

// touches reports whether a call is about one of some objects.
func (j *Judge) touches(o *plan.Op, objects map[int]bool) bool {
	for _, id := range j.load.Objects(o) {
		if objects[id] {
			return true
		}
	}
	return false
}

// ownership reports whether a field depends on whom an object belongs to.
func ownership(field string) bool {
	switch field {
	case "uid", "gid", "owner", "owner_group", "access":
		return true
	}
	return false
}
