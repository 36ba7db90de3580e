package judge

import (
	"github.com/rpcrdma/toolkit/replay/verdict"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// New returns a Judge for the replies to the ops of a workload.
func New(w *workload.Workload, o Options) *Judge {
	j := &Judge{load: w, level: o.Level, want: workload.Results{}, worlds: map[int]*history{}, moments: newMoments(w, o.Relaxed), cuts: cutsOf(w)}
	j.cmp.subject = subject{directory: j.directory, exclusive: j.exclusive, moment: j.moment}
	j.cmp.ignore = map[string]bool{}
	for _, f := range o.Ignore {
		j.cmp.ignore[f] = true
	}
	return j
}

// Judge compares a reply.
func (j *Judge) Judge(r *Reply) verdict.Judgement {
	var v verdict.Judgement
	j.reply, j.names = r, j.names[:0]
	j.catchUp(r.World, r.Op)
	j.cmp.reset()
	if r.Sent != verdict.None {
		v.Worsen(verdict.Equivalent, verdict.Reason{Code: r.Sent})
	}
	if j.level == Nothing {
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
	if !compared {
		j.remember(r)
	}
	if r.RPC == "" {
		j.changed(r.World, r.Op, r.Result)
	}
	return v
}
