package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// recorder collects what the report says.
type recorder struct {
	opt       *Options
	load      *Workload
	byName    map[string]*OperationReport
	verdicts  [verdicts]int
	reasons   map[reasonKey]int
	mismatch  []Mismatch
	more      int
	slip      samples
	wait      samples
	live      []span
	notes     []string
	noteCount map[string]int
}

type reasonKey struct {
	verdict Verdict
	reason  string
}

// span is a call on the wire, from the start of the replay.
type span struct{ from, to time.Duration }

// maxSpans bounds what the overlay of calls in flight is made of.
const maxSpans = 1 << 22

func newRecorder(opt *Options, w *Workload) *recorder {
	return &recorder{opt: opt, load: w, byName: map[string]*OperationReport{}, reasons: map[reasonKey]int{}, noteCount: map[string]int{}}
}

func (r *recorder) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if r.noteCount[s]++; r.noteCount[s] == 1 && len(r.notes) < 50 {
		r.notes = append(r.notes, s)
	}
}

// operation is the entry of an op's kind.
func (r *recorder) operation(o *plan.Op) *OperationReport {
	name := OpName(o)
	e := r.byName[name]
	if e == nil {
		e = &OperationReport{Operation: name}
		r.byName[name] = e
	}
	return e
}

func (r *recorder) count(o *plan.Op, clone int, j judgement, xid uint32) {
	r.verdicts[j.Verdict]++
	e := r.operation(o)
	e.Count++
	e.Verdicts[j.Verdict]++
	for _, reason := range j.Reasons {
		if k := (reasonKey{j.Verdict, general(reason)}); len(r.reasons) < 1000 || r.reasons[k] > 0 {
			r.reasons[k]++
		}
	}
	if j.Verdict <= Omitted {
		return
	}
	if len(r.mismatch) >= r.opt.Mismatches {
		r.more++
		return
	}
	r.mismatch = append(r.mismatch, Mismatch{Op: o.ID, XID: o.XID, LiveXID: xid, Clone: clone, What: o.What, Verdict: j.Verdict, Reasons: slices.Clone(j.Reasons)})
}

// general is a reason without what is special to one call, for counting.
func general(reason string) string {
	if len(reason) > 120 {
		reason = reason[:120] + "…"
	}
	return reason
}

// outcome records a call that was sent.
func (r *recorder) outcome(f *flight, j judgement) {
	if f.op == nil {
		return
	}
	e := f.e
	r.count(f.op, f.world.number, j, f.XID)
	q, s, t := f.Times.Queued, f.Times.Sent, f.Times.Replied
	if q.IsZero() {
		q = e.start
	}
	if f.tries <= 1 {
		r.slip.add(max(0, q.Sub(f.due)))
	}
	if !s.IsZero() {
		r.wait.add(max(0, s.Sub(q)))
	}
	if !s.IsZero() && !t.IsZero() {
		op := r.operation(f.op)
		op.live.add(t.Sub(s))
		if f.op.Latency >= 0 {
			op.captured.add(time.Duration(f.op.Latency))
		}
		if len(r.live) < maxSpans {
			r.live = append(r.live, span{s.Sub(e.start), t.Sub(e.start)})
		}
	}
	if r.opt.Observe != nil {
		r.opt.Observe(&Outcome{Clone: f.world.number, Op: f.op, XID: f.XID, Verdict: j.Verdict, Reasons: j.Reasons, Status: f.status, Due: f.due, Queued: q, Sent: s, Replied: t})
	}
}

// skipped records an op that was not sent.
func (r *recorder) skipped(n *node, v Verdict, reason string) {
	j := judgement{v, []string{reason}}
	r.count(n.op, n.world.number, j, 0)
	if r.opt.Observe != nil {
		r.opt.Observe(&Outcome{Clone: n.world.number, Op: n.op, Verdict: v, Reasons: j.Reasons})
	}
}

// samples are durations, kept exactly up to a number and thinned out beyond it
// in a way that keeps every k-th.
type samples struct {
	values []int64
	every  int
	skip   int
	n      int
	sum    int64
	max    int64
	min    int64
	sorted bool
}

// maxSamples is how many values are kept.
const maxSamples = 1 << 18

func (s *samples) add(d time.Duration) {
	v := int64(d)
	if s.n == 0 || v < s.min {
		s.min = v
	}
	s.n++
	s.sum += v
	s.max = max(s.max, v)
	if s.every == 0 {
		s.every = 1
	}
	if s.skip++; s.skip < s.every {
		return
	}
	s.skip = 0
	s.sorted = false
	if s.values = append(s.values, v); len(s.values) >= maxSamples {
		half := s.values[:0]
		for i := 0; i < len(s.values); i += 2 {
			half = append(half, s.values[i])
		}
		s.values = half
		s.every *= 2
	}
}

// quantile is the nearest rank.
func (s *samples) quantile(q float64) time.Duration {
	if len(s.values) == 0 {
		return 0
	}
	if !s.sorted {
		slices.Sort(s.values)
		s.sorted = true
	}
	i := int(q*float64(len(s.values))+0.9999999) - 1
	return time.Duration(s.values[max(0, min(i, len(s.values)-1))])
}
