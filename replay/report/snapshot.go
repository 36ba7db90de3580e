package report

import (
	"github.com/rpcrdma/toolkit/internal/units"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// Snapshot is what a Recorder has counted, for a run that goes on in another process. Times are not
// kept: they hold for one process only.
type Snapshot struct {
	Read       int             `json:"read"` // ops
	Operations []savedOp       `json:"operations"`
	Reasons    []savedReason   `json:"reasons,omitempty"`
	Mismatches []savedMismatch `json:"mismatches,omitempty"`
	More       int             `json:"more,omitempty"`
	Causes     []Cause         `json:"causes,omitempty"`
	Notes      []string        `json:"notes,omitempty"`
}

type savedOp struct {
	Name     string `json:"name"`
	Verdicts []int  `json:"verdicts"`
}

type savedReason struct {
	Verdict int    `json:"verdict"`
	Code    int    `json:"code"`
	Field   string `json:"field,omitempty"`
	Reason  string `json:"reason"`
	Count   int    `json:"count"`
}

type savedMismatch struct {
	Op        int      `json:"op"`
	XID       uint32   `json:"xid"`
	LiveXID   uint32   `json:"live_xid"`
	Clone     int      `json:"clone"`
	Operation string   `json:"operation,omitempty"`
	What      string   `json:"what"`
	Verdict   int      `json:"verdict"`
	Reasons   []string `json:"reasons"`
	Codes     []int    `json:"codes"`
}

// Snapshot returns what was counted.
func (r *Recorder) Snapshot() *Snapshot {
	s := &Snapshot{Read: r.read, More: r.more, Notes: r.notes}
	for _, o := range r.byName {
		s.Operations = append(s.Operations, savedOp{o.Operation, o.Verdicts[:]})
	}
	for _, x := range r.reasons {
		s.Reasons = append(s.Reasons, savedReason{int(x.Verdict), int(x.Code), x.field, x.Reason, x.Count})
	}
	s.Causes = r.allCauses()
	for i := range r.mismatch {
		m := &r.mismatch[i]
		x := savedMismatch{m.Op, m.XID, m.LiveXID, m.Clone, m.Operation, m.What, int(m.Verdict), m.Reasons, nil}
		for _, c := range m.Codes {
			x.Codes = append(x.Codes, int(c))
		}
		s.Mismatches = append(s.Mismatches, x)
	}
	return s
}

// keyOf is what a reason is counted by.
func keyOf(x *savedReason) reasonKey {
	k := reasonKey{verdict.Verdict(x.Verdict), x.Reason}
	if alike(verdict.Code(x.Code)) {
		k.reason = verdict.Code(x.Code).String() + " " + x.Field
	}
	return k
}

// Restore gives a new Recorder what another one had counted. reread is how many ops will be read
// again.
func (r *Recorder) Restore(s *Snapshot, reread int) {
	r.read = s.Read - reread
	for _, x := range s.Operations {
		o := r.byName[x.Name]
		if o == nil {
			o = &OperationReport{Operation: x.Name}
			r.byName[x.Name] = o
		}
		for v, n := range x.Verdicts[:min(len(x.Verdicts), verdict.Count)] {
			o.Count += n
			o.Verdicts[v] += n
			r.Verdicts[v] += n
		}
	}
	for _, x := range s.Reasons {
		r.reasons[keyOf(&x)] = &ReasonReport{Verdict: verdict.Verdict(x.Verdict), Code: verdict.Code(x.Code), Reason: x.Reason, Count: x.Count, field: x.Field}
	}
	for _, c := range s.Causes[:min(len(s.Causes), maxCauses)] {
		r.causes[c.Op] = &c
	}
	for _, x := range s.Mismatches {
		m := Mismatch{Op: x.Op, XID: x.XID, XIDHex: units.XID(x.XID), LiveXID: x.LiveXID, Clone: x.Clone, Operation: x.Operation, What: x.What, Verdict: verdict.Verdict(x.Verdict), Reasons: x.Reasons}
		for _, c := range x.Codes {
			m.Codes = append(m.Codes, verdict.Code(c))
		}
		r.mismatch = append(r.mismatch, m)
	}
	r.more = s.More
	for _, n := range s.Notes {
		r.Note("%s", n)
	}
}
