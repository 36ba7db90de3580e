package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

func entries(x ...uint32) (out []nfsacl.Aclent) {
	for i := 0; i < len(x); i += 3 {
		out = append(out, nfsacl.Aclent{Type: x[i], Id: x[i+1], Perm: x[i+2]})
	}
	return out
}

func secattr(l []nfsacl.Aclent) nfsacl.Secattr {
	return nfsacl.Secattr{Mask: nfsacl.NA_ACL | nfsacl.NA_ACLCNT, Aclcnt: uint32(len(l)), Aclent: l}
}

// aclOp is a call of NFSACL about the file of withFile.
func aclOp(w *workload.Workload, procedure uint32, field plan.Field, results []byte) *plan.Op {
	o := change(w, procedure, plan.Field{N: "fh", Kind: plan.FieldHandle, Ref: 2}, field)
	o.Program, o.Expect.Results, o.Modifies = nfsacl.NFS_ACL_PROGRAM, results, procedure == nfsacl.ACLPROC3_SETACL
	return o
}

func getacl(w *workload.Workload, l []nfsacl.Aclent) *plan.Op {
	res := nfsacl.GETACL3res{Resok: nfsacl.GETACL3resok{Acl: secattr(l)}}
	return aclOp(w, nfsacl.ACLPROC3_GETACL, plan.Field{N: "mask", Kind: plan.FieldU32, Value: 3}, res.Append(nil))
}

func withFile() *workload.Workload {
	w := steady(1, time.Millisecond)
	mode := uint32(0o640)
	w.Tables.Objects = append(w.Tables.Objects, plan.Object{ID: 2, Server: 1, Type: "file", Parent: 1, Name: "f", Origin: plan.Before, Mode: &mode})
	return w
}

// TestACL replays calls of NFSACL: the same list in another order is equivalent, any other list
// is different.
func TestACL(t *testing.T) {
	const uo, u, g, m, o = nfsacl.NA_USER_OBJ, nfsacl.NA_USER, nfsacl.NA_GROUP_OBJ, nfsacl.NA_CLASS_OBJ, nfsacl.NA_OTHER_OBJ
	prepared := entries(uo, 0, 6, u, 7, 7, g, 0, 4, m, 0, 4, o, 0, 0)
	changed := entries(uo, 0, 6, u, 7, 6, u, 8, 4, g, 0, 4, m, 0, 6, o, 0, 0)
	set := secattr(changed)
	for name, c := range map[string]struct {
		make func(w *workload.Workload)
		want verdict.Verdict
	}{
		"same":    {func(w *workload.Workload) { getacl(w, entries(uo, 0, 6, g, 0, 4, m, 0, 4, o, 0, 0)) }, verdict.Same},
		"order":   {func(w *workload.Workload) { getacl(w, entries(o, 0, 0, m, 0, 4, g, 0, 4, uo, 0, 6)) }, verdict.Equivalent},
		"no mask": {func(w *workload.Workload) { getacl(w, entries(uo, 0, 6, g, 0, 4, o, 0, 0)) }, verdict.Equivalent},
		"another": {func(w *workload.Workload) { getacl(w, entries(uo, 0, 6, g, 0, 5, m, 0, 5, o, 0, 0)) }, verdict.Different},
		"more":    {func(w *workload.Workload) { getacl(w, prepared) }, verdict.Different},
		"count":   {func(w *workload.Workload) { getacl(w, nil) }, verdict.Different},
		"prepared": {func(w *workload.Workload) {
			p := secattr(prepared)
			w.Tables.Objects[1].ACL = p.Append(nil)
			getacl(w, prepared)
		}, verdict.Same},
		"set": {func(w *workload.Workload) {
			s := aclOp(w, nfsacl.ACLPROC3_SETACL, plan.Field{N: "acl", Kind: plan.FieldRaw, Bytes: set.Append(nil)}, (&nfsacl.SETACL3res{}).Append(nil))
			getacl(w, changed).Deps = []plan.Dep{{Op: s.ID, Kind: plan.DepSize}}
		}, verdict.Same},
	} {
		t.Run(name, func(t *testing.T) {
			w := withFile()
			c.make(w)
			opt, _ := rig(t, providers.Options{Name: "tcp"}, "3")
			opt.Timing, opt.Ignore = run.Fast, []string{"attr"}
			got := map[int]verdict.Verdict{}
			opt.Observe = func(x *report.Outcome) { got[x.Op.ID] = x.Verdict }
			r, err := run.Run(within(t), w, opt)
			if err != nil {
				t.Fatal(err)
			}
			if v := got[len(w.Ops)]; v != c.want {
				t.Errorf("%v, want %v: %+v %+v", v, c.want, r.Reasons, r.Notes)
			}
		})
	}
}

// without is a server that does not serve NFSACL.
type without struct{ transport.Handler }

func (h without) ServeRPC(x transport.Exchange) {
	if c, ok := oncrpc.Peek(x.Call().Stream); ok && c.Program == nfsacl.NFS_ACL_PROGRAM {
		r := oncrpc.Reply{XID: c.XID, Stat: oncrpc.Accepted, Accept: oncrpc.ProgUnavail}
		x.Reply(&transport.Message{Stream: r.Append(nil)})
		return
	}
	h.Handler.ServeRPC(x)
}

func TestNoACL(t *testing.T) {
	w := withFile()
	p := secattr(entries(nfsacl.NA_USER_OBJ, 0, 6, nfsacl.NA_USER, 7, 7, nfsacl.NA_GROUP_OBJ, 0, 4, nfsacl.NA_CLASS_OBJ, 0, 4, nfsacl.NA_OTHER_OBJ, 0, 0))
	w.Tables.Objects[1].ACL = p.Append(nil)
	getacl(w, p.Aclent)
	opt, _ := rigOf(t, providers.Options{Name: "tcp"}, "3", func(h transport.Handler) transport.Handler { return without{h} })
	opt.Timing = run.Fast
	r, err := run.Run(within(t), w, opt)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Explained() || r.Totals["explained"] != 1 || len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "access control lists") || !strings.Contains(r.Notes[1], "NFSACL") {
		t.Errorf("%v %v %+v", r.Totals, r.Notes, r.Mismatches)
	}
}
