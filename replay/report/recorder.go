package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/internal/units"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Outcome is what became of one call.
type Outcome struct {
	Clone         int
	Op            *plan.Op
	XID           uint32 // live; 0 if it was not sent
	Verdict       verdict.Verdict
	Reasons       []verdict.Reason
	Status        string    // of the reply: "NFS3_OK"; empty without one
	Due           time.Time // when it should have been sent
	Queued        time.Time // when it was handed to the transport
	Sent, Replied time.Time
	Bytes         uint64 // of data, read and written
	Again         bool   // it was sent more than once
}

// Recorder collects what a Report says about calls. It belongs to one goroutine.
type Recorder struct {
	// Mismatches is how many calls that were neither same nor equivalent are listed.
	Mismatches int
	// Start is when the replay began.
	Start time.Time
	// WarmUp is how long after Start calls do not count in latencies and throughput.
	WarmUp time.Duration
	read   int // ops
	// Verdicts counts calls.
	Verdicts [verdict.Count]int

	byKind    map[kind]*OperationReport
	byName    map[string]*OperationReport // several kinds may have one name
	reasons   map[reasonKey]*ReasonReport
	causes    map[int]*Cause // by op
	mismatch  []Mismatch
	more      int
	slip      samples
	wait      samples
	all       samples // latencies
	original  curve   // calls in flight in the capture
	live      curve
	seconds   seconds
	notes     []string
	noteCount map[string]int
}

type reasonKey struct {
	verdict verdict.Verdict
	reason  string
}

// Limits of a Recorder.
const (
	maxReasons = 1000 // that are counted apart
	maxNotes   = 50
	maxCauses  = 1000
	maxReason  = 120 // bytes of a reason by which it is counted
)

// NewRecorder returns an empty Recorder.
func NewRecorder(mismatches int) *Recorder {
	return &Recorder{Mismatches: mismatches, byKind: map[kind]*OperationReport{}, byName: map[string]*OperationReport{}, reasons: map[reasonKey]*ReasonReport{}, causes: map[int]*Cause{}, noteCount: map[string]int{}}
}

// Note adds a sentence to the report, once. There may be 50 of them.
func (r *Recorder) Note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if r.noteCount[s]++; r.noteCount[s] == 1 && len(r.notes) < maxNotes {
		r.notes = append(r.notes, s)
	}
}

// Add records a call that is over.
func (r *Recorder) Add(o *Outcome) {
	op := r.count(o)
	if o.Queued.IsZero() {
		return // it was not sent
	}
	if r.WarmUp > 0 && o.Queued.Sub(r.Start) < r.WarmUp {
		return
	}
	if !o.Again {
		r.slip.add(max(0, o.Queued.Sub(o.Due)))
	}
	if !o.Sent.IsZero() {
		r.wait.add(max(0, o.Sent.Sub(o.Queued)))
	}
	if o.Sent.IsZero() || o.Replied.IsZero() {
		return
	}
	op.live.add(o.Replied.Sub(o.Sent))
	r.all.add(o.Replied.Sub(o.Sent))
	if o.Op.Latency >= 0 {
		op.captured.add(time.Duration(o.Op.Latency))
	}
	r.live.add(span{o.Sent.Sub(r.Start), o.Replied.Sub(r.Start)})
	r.seconds.add(o.Replied.Sub(r.Start), o.Replied.Sub(o.Sent), !o.Verdict.Fine(), o.Bytes)
}

// count counts a call and its reasons, and returns the entry of its kind.
func (r *Recorder) count(o *Outcome) *OperationReport {
	r.Verdicts[o.Verdict]++
	e := r.operation(kindOf(o.Op))
	e.Count++
	e.Verdicts[o.Verdict]++
	for i := range o.Reasons {
		own := o.Verdict
		if v := o.Reasons[i].Own; v != verdict.Same {
			own = min(own, v)
		}
		r.reason(own, &o.Reasons[i])
	}
	if o.Verdict > verdict.Omitted {
		r.differs(o, e.Operation)
	}
	r.cause(o)
	return e
}

// cause counts a call for the one that made it differ.
func (r *Recorder) cause(o *Outcome) {
	i := slices.IndexFunc(o.Reasons, func(w verdict.Reason) bool { return w.Code == verdict.Follows || w.Code == verdict.Unhappened })
	if i < 0 {
		return
	}
	w := &o.Reasons[i]
	c := r.causes[w.Call.ID]
	if c == nil {
		if len(r.causes) >= maxCauses {
			return
		}
		c = &Cause{Op: w.Call.ID, XID: w.Call.XID, XIDHex: units.XID(w.Call.XID), What: w.Call.What, Why: w.Now}
		r.causes[c.Op] = c
	}
	if w.Code == verdict.Follows {
		c.NotSent++
	} else {
		c.Explained++
	}
}

// allCauses returns the causes, the most consequential first, with the outcome of each from the list of mismatches.
func (r *Recorder) allCauses() (list []Cause) {
	for _, c := range r.causes {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.NotSent, a.NotSent), cmp.Compare(b.Explained, a.Explained), cmp.Compare(a.Op, b.Op))
	})
	for i := range list {
		c := &list[i]
		if k := slices.IndexFunc(r.mismatch, func(m Mismatch) bool { return m.Op == c.Op }); k >= 0 && len(r.mismatch[k].Reasons) > 0 {
			reasons := r.mismatch[k].Reasons
			c.Why = reasons[len(reasons)-1] // the first ones say how it was sent
		}
	}
	return list
}

// operation is the entry of a kind.
func (r *Recorder) operation(k kind) *OperationReport {
	if e := r.byKind[k]; e != nil {
		return e
	}
	name := k.name()
	e := r.byName[name]
	if e == nil {
		e = &OperationReport{Operation: name}
		r.byName[name] = e
	}
	r.byKind[k] = e
	return e
}

// reason counts a reason.
func (r *Recorder) reason(v verdict.Verdict, why *verdict.Reason) {
	text := Sentence(why)
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	k := reasonKey{v, text}
	if alike(why.Code) {
		k.reason = why.Code.String() + " " + why.At.Field
	}
	if x := r.reasons[k]; x != nil {
		if x.Count++; x.Reason != text && !strings.HasSuffix(x.Reason, example) {
			x.Reason += example
		}
	} else if len(r.reasons) < maxReasons {
		r.reasons[k] = &ReasonReport{Verdict: v, Code: why.Code, Reason: text, Count: 1, field: why.At.Field}
	}
}

// example is the end of a reason that stands for several that differ in numbers.
const example = ", for example"

// alike reports whether reasons that differ only in an offset or a time are counted as one.
func alike(c verdict.Code) bool {
	return c.Written() || c == verdict.DataDiffer || c == verdict.SeeksBack || c == verdict.StoodStill || c == verdict.TimeNotSet
}

// differs lists a call that was neither same nor equivalent.
func (r *Recorder) differs(o *Outcome, operation string) {
	if len(r.mismatch) >= r.Mismatches {
		r.more++
		return
	}
	m := Mismatch{Op: o.Op.ID, XID: o.Op.XID, XIDHex: units.XID(o.Op.XID), LiveXID: o.XID, Clone: o.Clone, Operation: operation, What: o.Op.What, Verdict: o.Verdict}
	for i := range o.Reasons {
		m.Reasons = append(m.Reasons, Sentence(&o.Reasons[i]))
		m.Codes = append(m.Codes, o.Reasons[i].Code)
	}
	r.mismatch = append(r.mismatch, m)
}

// Read notes when a call of the plan was in flight in the capture. speed is how much faster than
// captured it is sent.
func (r *Recorder) Read(o *plan.Op, speed float64) {
	r.read++
	if o.Latency >= 0 {
		at := func(captured int64) time.Duration { return time.Duration(min(float64(captured)/speed, 1<<60)) }
		r.original.add(span{at(o.Time), at(o.Time + o.Latency)})
	}
}

// Fill fills in what the recorder knows: all that is about calls.
func (r *Recorder) Fill(rep *Report) {
	rep.Schema, rep.Totals, rep.Mismatches, rep.More, rep.Notes = Schema, totals(&r.Verdicts), r.mismatch, r.more, r.notes
	rep.Slip, rep.CreditWait, rep.Empty = r.slip.spread(), r.wait.spread(), r.read == 0
	rep.Latency = r.all.spread()
	for _, o := range r.byName {
		o.Outcomes = totals(&o.Verdicts)
		o.Captured, o.Live = o.captured.spread(), o.live.spread()
		rep.Ops = append(rep.Ops, *o)
	}
	slices.SortFunc(rep.Ops, func(a, b OperationReport) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Operation, b.Operation))
	})
	rep.Causes = r.allCauses()
	for _, x := range r.reasons {
		rep.Reasons = append(rep.Reasons, *x)
	}
	slices.SortFunc(rep.Reasons, func(a, b ReasonReport) int {
		return cmp.Or(cmp.Compare(b.Verdict, a.Verdict), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	rep.Seconds = r.seconds.close()
	rep.Overlay = overlay(&r.original, &r.live, rep.Took)
}

// totals names the verdicts that occurred.
func totals(counts *[verdict.Count]int) map[string]int {
	out := map[string]int{}
	for v, n := range counts {
		if n > 0 {
			out[verdict.Verdict(v).String()] = n
		}
	}
	return out
}
