package judge

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// history is what replies of one world are judged by, beside the plan.
type history struct {
	// unhappened are objects, by ID, that lack what an op changed in the capture; 0
	// stands for one that is not known.
	unhappened map[int]*plan.Op
	// listings are directories whose listing is under way: names that one side has
	// given and the other has not, yet.
	listings map[int]map[string]int
	// files are what is known of the bytes of files, by object.
	files map[int]fills
	// onlyHere are ops that have changed something here, and failed in the capture: the
	// first maxOnlyHere.
	onlyHere []*plan.Op
	// verifiers has the verifier of the latest WRITE to each file that no COMMIT has followed.
	verifiers map[int][8]byte
	// cuts is how many of the cut calls are taken in.
	cuts int
}

func (j *Judge) history(world int) *history {
	h := j.worlds[world]
	if h == nil {
		h = &history{unhappened: map[int]*plan.Op{}, listings: map[int]map[string]int{}, files: map[int]fills{}, verifiers: map[int][8]byte{}}
		j.worlds[world] = h
	}
	return h
}

// remember notes what a call has not changed here, if it failed and the captured one
// did not.
func (j *Judge) remember(r *Reply) {
	x := r.Op.Expect
	if code, _ := StatusOf(r.Result); x != nil && x.RPC == "" && r.RPC == "" && x.Status == 0 && code != 0 {
		j.history(r.World).miss(r.Op)
	} else if h := j.history(r.World); x != nil && x.Status != 0 && r.RPC == "" && code == 0 && r.Op.Modifies && len(h.onlyHere) < maxOnlyHere {
		h.onlyHere = append(h.onlyHere, r.Op)
	}
}

const maxOnlyHere = 256

// miss notes that an op has not changed here what it changed in the capture.
func (h *history) miss(o *plan.Op) {
	if !o.Modifies {
		return
	}
	if o.Compound == nil {
		h.unhappened[workload.ObjectAt(o, 0)] = o
		return
	}
	for i := range o.Compound.Ops {
		// An OPEN has then opened nothing, and the calls on that file show it.
		op := o.Compound.Ops[i].Op
		if e := ops.Operation(op); e != nil && e.Class == ops.Changes && nfs4.NfsOpnum4(op) != nfs4.OP_OPEN {
			h.unhappened[workload.ObjectAt(o, i)] = o
		}
	}
}

// named is the first op that has not changed an object of that name.
func (h *history) named(load *workload.Workload, name string) (first *plan.Op) {
	for id, o := range h.unhappened {
		if id > 0 && workload.Name(&load.Tables.Objects[id-1]) == name && (first == nil || o.ID < first.ID) {
			first = o
		}
	}
	return first
}
