package judge

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// history is what the replies of one clone are judged by, in addition to the plan.
type history struct {
	// unhappened are the objects, by ID, that lack a change that an op made in the capture; 0
	// stands for an unknown object.
	unhappened map[int]*verdict.Call
	// named is the first of these ops by the name of the object.
	named map[string]*verdict.Call
	// listings are the unfinished ones, by their first op: names that one side has returned and
	// the other has not yet. continues has the first op for each op that continues a listing.
	listings  map[int]map[string]int
	continues map[int]int
	// expected is what this server must hold after the calls that it has executed.
	expected *expected.State
	// onlyHere are ops that have changed something here, and failed in the capture: the
	// first maxOnlyHere.
	onlyHere []*plan.Op
	// verifiers has the verifier of the latest WRITE to each file that no COMMIT has followed.
	verifiers map[int][8]byte
	// clocks, handles and chains check the server's replies against each other; changes counts
	// the calls that may have changed an object.
	clocks  clocks
	handles handles
	chains  map[int]*chain // by the op that listed last
	changes map[int]int
	locks   locks
	lacking lacking
	// rtmax is the largest READ of NFSv3 in bytes, from FSINFO; 0: not known.
	rtmax uint32
	// squash is the user that the server has put in the place of root; empty: none.
	squash string
	// changed says that something was changed here, refusing that the server has said that it is read-only.
	changed, refusing bool
	// others are objects that calls with Kerberos credentials have made: here they belong to another user.
	others map[int]bool
}

func (j *Judge) history(clone int) *history {
	h := j.clones[clone]
	if h == nil {
		h = &history{
			unhappened: map[int]*verdict.Call{}, named: map[string]*verdict.Call{}, listings: map[int]map[string]int{}, continues: map[int]int{},
			expected: expected.New(j.load), handles: handles{}, chains: map[int]*chain{}, changes: map[int]int{}, verifiers: map[int][8]byte{},
			others: map[int]bool{},
		}
		j.clones[clone] = h
	}
	return h
}

// remember notes the changes that a call did not make here, because it failed and the captured
// one did not.
func (j *Judge) remember(r *Reply) {
	x := r.Op.Expect
	if code, _ := StatusOf(r.Result); r.Op.Modifies && r.RPC == "" && code == 0 {
		j.Changed(r.Clone)
	}
	if code, _ := StatusOf(r.Result); x != nil && x.RPC == "" && x.Status == 0 && (r.RPC != "" || code != 0) {
		j.history(r.Clone).miss(j.load, r.Op)
	} else if h := j.history(r.Clone); x != nil && x.Status != 0 && r.RPC == "" && code == 0 && r.Op.Modifies && len(h.onlyHere) < maxOnlyHere {
		h.onlyHere = append(h.onlyHere, r.Op)
	}
}

// agreed notes that a call has done here what it did in the capture.
func (j *Judge) agreed(r *Reply) {
	if x := r.Op.Expect; x != nil && x.RPC == "" && r.RPC == "" && x.Status == 0 {
		if code, _ := StatusOf(r.Result); code == 0 {
			h := j.history(r.Clone)
			h.lacking.agree(h.expected, r.Op)
			if r.Less {
				h.less(j.load, r.Op)
			}
		}
	}
}

// less notes that an op has set fewer attributes here than in the capture.
func (h *history) less(load *workload.Workload, o *plan.Op) {
	c := callOf(o)
	h.lacking.lose(h.expected, o, &c, false)
	for i := range o.Compound.Ops {
		switch nfs4.NfsOpnum4(o.Compound.Ops[i].Op) {
		case nfs4.OP_SETATTR, nfs4.OP_CREATE, nfs4.OP_OPEN:
			h.lacks(load, workload.ObjectAt(o, i), &c)
		}
	}
}

const maxOnlyHere = 256

// miss notes that an op did not make here the change that it made in the capture.
func (h *history) miss(load *workload.Workload, o *plan.Op) {
	if !o.Modifies {
		return
	}
	c := callOf(o)
	h.lacking.lose(h.expected, o, &c, true)
	if o.Compound == nil {
		h.lacks(load, workload.ObjectAt(o, 0), &c)
		return
	}
	for i := range o.Compound.Ops {
		// A failed OPEN has opened nothing, which shows in the calls on that file.
		op := o.Compound.Ops[i].Op
		if e := ops.Operation(op); e != nil && e.Class == ops.Changes && nfs4.NfsOpnum4(op) != nfs4.OP_OPEN {
			h.lacks(load, workload.ObjectAt(o, i), &c)
		}
	}
}

// lacks notes that an object lacks the change that an op made in the capture.
func (h *history) lacks(load *workload.Workload, id int, o *verdict.Call) {
	h.unhappened[id] = o
	if id <= 0 || id > len(load.Tables.Objects) {
		return
	}
	name := workload.Name(&load.Tables.Objects[id-1])
	if was := h.named[name]; was == nil || o.ID < was.ID {
		h.named[name] = o
	}
}
