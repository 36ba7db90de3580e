package judge

import (
	"slices"
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/invariant"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// invariants checks a reply by the rules that hold for the replies of any NFS server, with the checker of rpcrdma-dump check. A server may show
// two changes at one time within a tick of its clock.
func (j *Judge) invariants(v *verdict.Judgement, r *Reply) {
	if r.Left > 0 {
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.Invariant, Now: strconv.Itoa(r.Left) + " bytes behind the results", Was: "0"})
	}
	if r.Args == nil {
		return
	}
	j.invariant.Settled = int64(j.history(r.Clone).clocks.granularity())
	for _, b := range j.invariant.Judge(&invariant.Exchange{
		Args: r.Args, Result: r.Result, Sent: r.Issued.UnixNano(), Replied: r.Replied.UnixNano(), Bytes: uint64(r.Bytes), Again: r.Again,
	}) {
		if b.Kind == invariant.Contradiction && slices.ContainsFunc(v.Reasons, func(w verdict.Reason) bool { return w.Code == verdict.NotStable }) {
			continue // it says the same
		}
		why := verdict.Reason{Code: verdict.Invariant, Now: b.Seen(), Was: b.Expected()}
		if c, ok := r.Result.(*nfs4.CompoundRes); ok && b.At >= 0 && b.At < len(c.Ops) {
			why.At.Path = nfs4.OpName(c.Ops[b.At].Number)
		}
		v.Worsen(verdict.Different, why)
	}
}

// Cached is what a client has in its cache of a file with a delegation: the change attribute and the size that the server has given last. ok is
// false if it has not given both.
func (j *Judge) Cached(handle []byte) (change, size uint64, ok bool) {
	return j.invariant.Latest(0, handle)
}
