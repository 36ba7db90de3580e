package judge

import (
	"slices"

	"github.com/rpcrdma/toolkit/analyze/invariant"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// New returns a Judge for the replies to the ops of a workload.
func New(w *workload.Workload, o Options) *Judge {
	j := &Judge{load: w, level: o.Level, want: workload.Results{}, clones: map[int]*history{}, moments: newMoments(w, o.Relaxed), cuts: newCuts(w), doubtful: doubtful(w), madeUp: madeUp(w), moved: moved(w), refused: map[uint32]bool{}, tick: o.Tick, shared: o.Shared, invariant: invariant.New(), follow: o.Level == All || o.Follow}
	j.cmp.subject = subject{directory: j.directory, exclusive: j.exclusive, prepared: j.prepared, moment: j.moment}
	j.cmp.ignore = map[string]bool{}
	for _, f := range o.Ignore {
		j.cmp.ignore[f] = false
	}
	return j
}

// Judge compares a reply.
func (j *Judge) Judge(r *Reply) verdict.Judgement {
	var v verdict.Judgement
	j.reply, j.names = r, j.names[:0]
	j.cmp.reset()
	if r.Sent != verdict.None {
		v.Worsen(verdict.Equivalent, verdict.Reason{Code: r.Sent})
	}
	if j.level == Nothing {
		j.executed(r)
		return v
	}
	compared := j.outcome(&v, r) && j.level == All
	if compared {
		j.results(&v, r)
		j.data(&v, r)
		j.chunks(&v, r)
	}
	j.explain(&v, r, compared)
	j.self(&v, r)
	j.locked(&v, r)
	if j.shared && !v.Verdict.Fine() && !slices.ContainsFunc(v.Reasons, func(w verdict.Reason) bool { return w.Code == verdict.Invariant }) {
		v.Explain(verdict.Reason{Code: verdict.Shared})
	}
	if !compared {
		j.remember(r)
	}
	j.agreed(r)
	j.executed(r)
	return v
}

// Read tells the judge of an op of a workload whose ops are in a file, and of how many bytes it
// takes there. Ops have to be told in the order of the plan, and before the replies to those that
// were in flight together with them are judged.
func (j *Judge) Read(o *plan.Op, text int) { j.moments.add(o, text) }

// ReadSkip is Read for what is not replayed.
func (j *Judge) ReadSkip(s *plan.Skip) { j.cuts.add(j.load, s) }

// Forget says that all ops that are still to be judged began at a captured time or later.
func (j *Judge) Forget(before int64) { j.moments.forget(before) }

// Short is how many calls were too many to be kept for explaining others: those in flight together
// with very many others, and those that the capture has only in part.
func (j *Judge) Short() (together, cut int) { return j.moments.dropped, j.cuts.more }

// Unmet are the fields of Options.Ignore that no reply had, in order: their names may be wrong.
func (j *Judge) Unmet() []string {
	var out []string
	for name, met := range j.cmp.ignore {
		if !met {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// executed records what a call has changed on this server.
func (j *Judge) executed(r *Reply) {
	j.owned(r)
	if m, ok := r.Result.(*nfs3.FSINFO3res); ok && m.Status == nfs3.NFS3_OK {
		j.history(r.Clone).rtmax = m.Resok.Rtmax
	}
	if r.RPC == "" && j.follow {
		j.history(r.Clone).expected.Done(&expected.Call{Op: r.Op, Result: r.Result, Sent: r.Issued, Replied: r.Replied})
	}
}

// Expected is what the server must hold for one copy of the plan.
func (j *Judge) Expected(clone int) *expected.State { return j.history(clone).expected }

// Unsent notes that a call is not sent, with its verdict.
func (j *Judge) Unsent(clone int, o *plan.Op, v verdict.Verdict) {
	if v != verdict.Omitted {
		j.missed(clone, o)
	}
	j.unsent(clone, o)
}

// missed notes that what a call changed in the capture has, or may have, not happened here.
func (j *Judge) missed(clone int, o *plan.Op) {
	if x := o.Expect; x != nil && x.RPC == "" && x.Status == 0 {
		j.history(clone).miss(j.load, o)
	}
}

// Lost notes that the reply to a call did not come, or could not be read. The server may have
// been restarted.
func (j *Judge) Lost(clone int, o *plan.Op) {
	h := j.history(clone)
	if j.follow {
		h.expected.Done(&expected.Call{Op: o})
	}
	j.missed(clone, o)
	clear(h.verifiers)
}

// Restarted notes that the server was restarted. It returns how many files had uncommitted data,
// which the server may have lost (RFC 8881, section 18.32).
func (j *Judge) Restarted(clone int) int {
	j.invariant = invariant.New()
	h := j.history(clone)
	h.locks.epoch++
	n := len(h.verifiers)
	for object := range h.verifiers {
		h.expected.Uncommitted(object)
	}
	clear(h.verifiers)
	return n
}

// meanwhile reports whether a call in flight together with an op changes a part of a range, so
// that either content is right.
func (j *Judge) meanwhile(l *expected.State, o *plan.Op, object int, from, to uint64) bool {
	// A COMPOUND may read its own changes.
	found := l.Changes(o, object, from, to)
	j.moments.together(o, changeable{object: object}, func(c *plan.Op) bool {
		found = found || l.Changes(c, object, from, to)
		return !found
	})
	return found
}

// objectOf is workload.ObjectAt for the operation that returned a piece of data.
func objectOf(o *plan.Op, at int) int {
	if o.Compound == nil {
		at = -1
	}
	return workload.ObjectAt(o, at)
}
