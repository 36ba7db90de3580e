package report

import (
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Schema names the form of a Report in JSON.
const Schema = "rpcrdma.replay/1"

// Report says what a run did. In JSON durations are nanoseconds, in keys that end in
// _ns.
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
	// Impossible counts transactions of the capture that cannot be replayed, and so
	// are not in the plan.
	Impossible []plan.Reason  `json:"impossible,omitempty"`
	Bytes      uint64         `json:"bytes"` // of data, read and written
	Totals     map[string]int `json:"verdicts"`
	// Accepted is how many of the mismatches an earlier run had, too, so that they count as fine.
	Accepted int               `json:"accepted,omitempty"`
	Ops      []OperationReport `json:"operations"`
	// Causes are calls that made others differ from the capture, the most consequential first.
	Causes  []Cause        `json:"causes,omitempty"`
	Reasons []ReasonReport `json:"reasons,omitempty"`
	// Mismatches are calls that were neither same, nor equivalent, nor omitted.
	Mismatches []Mismatch `json:"mismatches,omitempty"`
	More       int        `json:"more_mismatches,omitempty"` // that are not listed
	// Slip is how late calls were handed to the transport, counted from the time at
	// which they were due and waited for no other call. CreditWait is how long they
	// then waited for a credit.
	Slip       Spread            `json:"slip"`
	CreditWait Spread            `json:"credit_wait"`
	Overlay    []OverlayBin      `json:"in_flight"`
	Seconds    []Second          `json:"seconds"` // what the run did in each second
	Latency    Spread            `json:"latency"` // of all calls
	Steps      []Step            `json:"steps,omitempty"`
	Transport  []TransportReport `json:"transport"`
	// Written says what became of the bytes that were written. ReadBack is set if they were
	// read back at the end.
	Written  Written   `json:"written"`
	ReadBack *ReadBack `json:"read_back,omitempty"`
	// SelfCheck and Diff are set if they were asked for.
	SelfCheck *SelfCheck    `json:"self_check,omitempty"`
	Diff      *latency.Diff `json:"diff,omitempty"`
	Notes     []string      `json:"notes,omitempty"`
	// Recoveries are clients of NFSv4 that the server had forgotten.
	Recoveries []Recovery `json:"recoveries,omitempty"`

	Empty bool `json:"-"` // there is nothing in the plan
}

// Step is a rate that was tried to find the highest one.
type Step struct {
	Rate    float64 `json:"rate"`    // calls a second
	Reached float64 `json:"reached"` // calls a second
	Latency Spread  `json:"latency"`
	Holds   bool    `json:"holds"` // the rate was reached, and the latency was not too long
}

// Join adds the counts of earlier rounds; earlier may be nil. One Recorder serves all rounds and has filled in the rest.
func (r *Report) Join(earlier *Report) {
	if earlier == nil {
		return
	}
	r.Start, r.Took = earlier.Start, r.Took+earlier.Took
	r.Planned, r.Sent, r.Retried = r.Planned+earlier.Planned, r.Sent+earlier.Sent, r.Retried+earlier.Retried
	r.Extra, r.NotDone, r.Bytes = r.Extra+earlier.Extra, r.NotDone+earlier.NotDone, r.Bytes+earlier.Bytes
	p, q := &r.Setup.Prepared, &earlier.Setup.Prepared
	p.Directories, p.Files, p.Others = p.Directories+q.Directories, p.Files+q.Files, p.Others+q.Others
	p.Bytes, p.Sparse, p.Failed = p.Bytes+q.Bytes, p.Sparse+q.Sparse, p.Failed+q.Failed
	r.Recoveries = append(earlier.Recoveries, r.Recoveries...)
}

// Recovery says how a client was made anew that the server had forgotten.
type Recovery struct {
	Clone    int           `json:"clone"`
	Client   int           `json:"client"` // of the plan
	Why      string        `json:"why"`    // status that said so
	At       time.Duration `json:"at_ns"`  // from the start
	Took     time.Duration `json:"took_ns"`
	Sessions int           `json:"sessions"`
	Opens    int           `json:"opens"` // reclaimed
	Locks    int           `json:"locks"` // byte ranges, reclaimed
	Reopened int           `json:"reopened"`
	Lost     int           `json:"lost"`              // states that could not be had again
	Details  []string      `json:"details,omitempty"` // of these, the first 16
	Failed   string        `json:"failed,omitempty"`  // why the client could not be made anew
}

// Setup says how the run was made.
type Setup struct {
	Server      string   `json:"server,omitempty"`
	Directory   string   `json:"directory"`
	Timing      string   `json:"timing"`
	Clones      int      `json:"clones"`
	Rounds      int      `json:"rounds,omitempty"` // replays of the plan, one after the other
	Connections int      `json:"connections"`
	Layout      string   `json:"layout"`
	Prepared    Prepared `json:"prepared"`
	// Paced says that calls were sent at captured times or intervals, so that original
	// and replay can be laid over each other.
	Paced bool `json:"-"`
}

// Prepared counts what was made before the replay.
type Prepared struct {
	Directories int    `json:"directories"`
	Files       int    `json:"files"`
	Others      int    `json:"others"` // links, devices, …
	Bytes       uint64 `json:"bytes"`
	Sparse      int    `json:"sparse"` // files too large to be written in full
	Failed      int    `json:"failed"`
}

// Spread summarizes durations.
type Spread struct {
	Count int           `json:"count"`
	Min   time.Duration `json:"min_ns"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// OperationReport summarizes the calls of one kind of operation.
type OperationReport struct {
	Operation string             `json:"operation"`
	Count     int                `json:"count"`
	Verdicts  [verdict.Count]int `json:"-"`
	Outcomes  map[string]int     `json:"verdicts"`
	Captured  Spread             `json:"captured"` // latency in the capture
	Live      Spread             `json:"live"`     // from Sent to Replied

	captured, live samples
}

// ReasonReport says how often a reason was given, and the verdict that it led to: of a call with several reasons, each has its own.
type ReasonReport struct {
	Verdict verdict.Verdict `json:"verdict"`
	Code    verdict.Code    `json:"code"`
	Reason  string          `json:"reason"`
	Count   int             `json:"count"`

	field string
}

// Cause is a call whose outcome made others differ: they were not sent, or found a different state from that of the capture.
type Cause struct {
	Op        int    `json:"op"`
	XID       uint32 `json:"xid"` // as captured
	XIDHex    string `json:"xid_hex"`
	What      string `json:"what"`
	Why       string `json:"why,omitempty"` // its outcome
	NotSent   int    `json:"not_sent"`
	Explained int    `json:"explained"` // calls that it explains
}

// Mismatch is a call whose outcome was not that of the capture.
type Mismatch struct {
	Op        int             `json:"op"`
	XID       uint32          `json:"xid"` // as captured
	XIDHex    string          `json:"xid_hex"`
	LiveXID   uint32          `json:"live_xid"` // 0 if it was not sent
	Clone     int             `json:"clone"`
	Operation string          `json:"operation"` // as in OperationReport
	What      string          `json:"what"`
	Verdict   verdict.Verdict `json:"verdict"`
	Reasons   []string        `json:"reasons"`
	Codes     []verdict.Code  `json:"codes"` // of Reasons
	// Accepted: an earlier run had it, too.
	Accepted bool `json:"accepted,omitempty"`
}

// OverlayBin is an interval with the mean number of calls in flight. Times of the
// capture are scaled as the run was.
type OverlayBin struct {
	From     time.Duration `json:"from_ns"`
	Original float64       `json:"original"`
	Replay   float64       `json:"replay"`
}

// SelfCheck compares what a run says it did with what the dissector reads in the
// packets of the same run.
type SelfCheck struct {
	Calls        int      `json:"calls"`        // that the run says were answered
	Transactions int      `json:"transactions"` // that the dissector found, preparation included
	Same         int      `json:"same"`         // calls found with the same operations, status and bytes
	Missing      int      `json:"missing"`      // calls that were not found
	Different    int      `json:"different"`    // calls found, but not the same
	Incomplete   int      `json:"incomplete"`   // transactions of which the dissector lacks a part
	Details      []string `json:"details,omitempty"`
}

// OK reports whether the same transactions came out.
func (s *SelfCheck) OK() bool { return s.Missing == 0 && s.Different == 0 && s.Incomplete == 0 }

// TransportReport describes one connection.
type TransportReport struct {
	Transport string          `json:"transport"`
	Local     string          `json:"local"`
	Remote    string          `json:"remote"`
	Detail    string          `json:"detail,omitempty"`
	Stats     transport.Stats `json:"stats"`
}

// Explained reports whether every call was made, and every difference from the capture
// is explained or accepted, and whether all that was read back is as the run has left it.
func (r *Report) Explained() bool {
	return r.Stopped == "" && r.NotDone == 0 && wrongs(r.Totals) == r.Accepted && r.ReadBack.fine()
}
