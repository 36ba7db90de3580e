package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// ReportSchema names the form of a Report in JSON.
const ReportSchema = "rpcrdma.replay/1"

// Report says what a run did. Durations are nanoseconds in JSON, in keys that end in _ns.
type Report struct {
	Schema  string        `json:"schema"`
	Sources []string      `json:"sources"`
	Start   time.Time     `json:"start"`
	Took    time.Duration `json:"took_ns"`
	Stopped string        `json:"stopped,omitempty"` // why the run ended early
	Setup   Setup         `json:"setup"`
	Planned int           `json:"planned"` // ops, all clones
	Sent    int           `json:"sent"`    // calls, repetitions included
	Retried int           `json:"retried"`
	Extra   int           `json:"extra"` // calls that the plan does not have
	NotDone int           `json:"not_done"`
	// Impossible are transactions of the capture that are not in the plan
	// because they cannot be replayed.
	Impossible []plan.Reason     `json:"impossible,omitempty"`
	Bytes      uint64            `json:"bytes"` // of data, read and written
	Totals     map[string]int    `json:"verdicts"`
	Ops        []OperationReport `json:"operations"`
	Reasons    []ReasonReport    `json:"reasons,omitempty"`
	// Mismatches are calls that were neither same, nor equivalent, nor omitted.
	Mismatches []Mismatch `json:"mismatches,omitempty"`
	More       int        `json:"more_mismatches,omitempty"` // that are not listed
	// Slip is how late calls were handed to the transport: after the time at
	// which they were due and free of dependencies. CreditWait is how long
	// they then waited for a credit.
	Slip       Spread            `json:"slip"`
	CreditWait Spread            `json:"credit_wait"`
	Overlay    []OverlayBin      `json:"in_flight"`
	Transport  []TransportReport `json:"transport"`
	// SelfCheck and Diff are there if they were asked for.
	SelfCheck *SelfCheck    `json:"self_check,omitempty"`
	Diff      *latency.Diff `json:"diff,omitempty"`
	Notes     []string      `json:"notes,omitempty"`

	empty bool // there is nothing in the plan
}

// Setup says how the run was made.
type Setup struct {
	Server      string   `json:"server,omitempty"`
	Directory   string   `json:"directory"`
	Timing      string   `json:"timing"`
	Clones      int      `json:"clones"`
	Connections int      `json:"connections"`
	Layout      string   `json:"layout"`
	Prepared    Prepared `json:"prepared"`
}

// Spread sums up durations.
type Spread struct {
	Count int           `json:"count"`
	Min   time.Duration `json:"min_ns"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

func (s *samples) spread() Spread {
	if s.n == 0 {
		return Spread{}
	}
	return Spread{s.n, time.Duration(s.min), time.Duration(s.sum / int64(s.n)), s.quantile(.5), s.quantile(.9), s.quantile(.99), time.Duration(s.max)}
}

// OperationReport is one kind of operation.
type OperationReport struct {
	Operation string         `json:"operation"`
	Count     int            `json:"count"`
	Verdicts  [verdicts]int  `json:"-"`
	Outcomes  map[string]int `json:"verdicts"`
	Captured  Spread         `json:"captured"` // latency in the capture
	Live      Spread         `json:"live"`     // from Sent to Replied

	captured, live samples
}

// ReasonReport counts a reason.
type ReasonReport struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Count   int     `json:"count"`
}

// Mismatch is a call whose outcome was not that of the capture.
type Mismatch struct {
	Op      int      `json:"op"`
	XID     uint32   `json:"xid"`      // as captured
	LiveXID uint32   `json:"live_xid"` // 0 if it was not sent
	Clone   int      `json:"clone"`
	What    string   `json:"what"`
	Verdict Verdict  `json:"verdict"`
	Reasons []string `json:"reasons"`
}

// OverlayBin is a part of the time with the mean number of calls in flight.
// Original times are those of the capture, scaled as the run was.
type OverlayBin struct {
	From     time.Duration `json:"from_ns"`
	Original float64       `json:"original"`
	Replay   float64       `json:"replay"`
}

// TransportReport is what one connection says of itself.
type TransportReport struct {
	Transport string          `json:"transport"`
	Local     string          `json:"local"`
	Remote    string          `json:"remote"`
	Detail    string          `json:"detail,omitempty"`
	Stats     transport.Stats `json:"stats"`
}

// OpName is the kind of an op, as a report groups them: "nfs3 READ",
// "nfs4.1 OPEN". A COMPOUND is named after what it is for.
func OpName(o *plan.Op) string {
	if o.Compound != nil {
		v := "nfs4." + string(rune('0'+min(o.Compound.Minor, 9)))
		return v + " " + mainOp(o.Compound)
	}
	p := nfs.Lookup(o.Program, o.Version)
	if p == nil {
		return "program"
	}
	version := p.Name
	switch o.Program {
	case 100003, 100227, 100005:
		version += string(rune('0' + min(o.Version, 9)))
	}
	if proc := p.Procedure(o.Procedure); proc != nil {
		return version + " " + proc.Name
	}
	return version
}

// mainOp is the operation that a COMPOUND is there for: the first of those
// that are not about file handles, attributes and sessions, or else the last
// one that is there.
func mainOp(c *plan.Compound) string {
	best, rank := "COMPOUND", 0
	for i := range c.Ops {
		r := 3
		switch nfs4.NfsOpnum4(c.Ops[i].Op) {
		case nfs4.OP_SEQUENCE, nfs4.OP_PUTFH, nfs4.OP_PUTROOTFH, nfs4.OP_SAVEFH, nfs4.OP_RESTOREFH, nfs4.OP_GETFH:
			r = 1
		case nfs4.OP_GETATTR, nfs4.OP_ACCESS, nfs4.OP_COMMIT:
			r = 2
		}
		if r > rank {
			best, rank = nfs4.OpName(c.Ops[i].Op), r
		}
	}
	return best
}

// overlayBins is how many parts the time is cut into.
const overlayBins = 40

// overlay compares how many calls were in flight.
func overlay(original, live []span, took time.Duration) []OverlayBin {
	end := took
	for _, s := range original {
		end = max(end, s.to)
	}
	if end <= 0 {
		return nil
	}
	out := make([]OverlayBin, overlayBins)
	width := (end + overlayBins - 1) / overlayBins
	fill := func(list []span, put func(b *OverlayBin, share float64)) {
		for _, s := range list {
			for b := max(0, int(s.from/width)); b < overlayBins; b++ {
				lo, hi := time.Duration(b)*width, time.Duration(b+1)*width
				if lo >= s.to && s.to > s.from {
					break
				}
				part := min(hi, s.to) - max(lo, s.from)
				if part > 0 {
					put(&out[b], float64(part)/float64(width))
				}
				if s.to <= hi {
					break
				}
			}
		}
	}
	for b := range out {
		out[b].From = time.Duration(b) * width
	}
	fill(original, func(b *OverlayBin, share float64) { b.Original += share })
	fill(live, func(b *OverlayBin, share float64) { b.Replay += share })
	return out
}

// report puts everything together.
func (e *engine) report(began time.Time, took time.Duration) *Report {
	r := e.record
	rep := &Report{Schema: ReportSchema, Sources: e.load.Tables.Header.Sources, Start: began, Took: took, Stopped: e.stopping,
		Planned: len(e.load.Ops) * len(e.worlds), Sent: e.sent, Retried: e.retried, Extra: e.extra, NotDone: e.left, Bytes: e.bytes,
		Impossible: e.load.Impossible(), Totals: map[string]int{}, Mismatches: r.mismatch, More: r.more, Slip: r.slip.spread(), CreditWait: r.wait.spread(), Notes: r.notes,
		empty: len(e.load.Ops) == 0}
	for v, n := range r.verdicts {
		if n > 0 {
			rep.Totals[Verdict(v).String()] = n
		}
	}
	for _, o := range r.byName {
		o.Outcomes = map[string]int{}
		for v, n := range o.Verdicts {
			if n > 0 {
				o.Outcomes[Verdict(v).String()] = n
			}
		}
		o.Captured, o.Live = o.captured.spread(), o.live.spread()
		rep.Ops = append(rep.Ops, *o)
	}
	slices.SortFunc(rep.Ops, func(a, b OperationReport) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Operation, b.Operation))
	})
	for k, n := range r.reasons {
		rep.Reasons = append(rep.Reasons, ReasonReport{k.verdict, k.reason, n})
	}
	slices.SortFunc(rep.Reasons, func(a, b ReasonReport) int {
		return cmp.Or(cmp.Compare(b.Verdict, a.Verdict), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	var original []span
	for _, o := range e.load.Ops {
		if o.Latency >= 0 && len(original) < maxSpans {
			from := time.Duration(float64(o.Time) / e.opt.Speed)
			original = append(original, span{from, from + time.Duration(float64(o.Latency)/e.opt.Speed)})
		}
	}
	rep.Overlay = overlay(original, r.live, took)
	for _, c := range e.all {
		p := c.req.Peer()
		rep.Transport = append(rep.Transport, TransportReport{p.Transport, p.Local.String(), p.Remote.String(), p.Detail, c.req.Stats()})
	}
	rep.Setup = Setup{Directory: e.opt.Directory, Timing: e.opt.Timing.String(), Clones: len(e.worlds), Connections: len(e.all), Layout: "the endpoint's own"}
	if e.opt.Layout {
		rep.Setup.Layout = "as captured"
	}
	return rep
}

// Explained reports whether each call was done, and every difference has an
// explanation in the two servers.
func (r *Report) Explained() bool {
	return r.Stopped == "" && r.NotDone == 0 && r.Totals[Worse.String()]+r.Totals[Different.String()]+r.Totals[NotSent.String()]+r.Totals[Lost.String()] == 0
}

var timingNames = [...]string{"as captured", "think time", "as fast as dependencies allow", "fixed rate"}

func (t Timing) String() string { return timingNames[t] }
