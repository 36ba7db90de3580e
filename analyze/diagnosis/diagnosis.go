package diagnosis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/adapter"
)

// Schema names the form of a Report.
const Schema = "rpcrdma.diagnosis/1"

// Code is what a cause is.
type Code string

// Codes.
const (
	ServerTime         Code = "server-time"
	ServerThreads      Code = "server-threads"
	PathDelay          Code = "path-delay"
	PathStall          Code = "path-stall"
	Pause              Code = "pause"
	LinkFull           Code = "link-full"
	Congestion         Code = "congestion"
	LossRecovery       Code = "loss-recovery"
	ReceiverNotReady   Code = "receiver-not-ready"
	ReadDepth          Code = "read-depth"
	Credits            Code = "credits"
	SessionSlots       Code = "session-slots"
	ClientReadResponse Code = "client-read-response"
	ClientIdle         Code = "client-idle"
	OneAtATime         Code = "one-at-a-time"
	Recall             Code = "recall"
	AskedToWait        Code = "asked-to-wait"
	Outage             Code = "outage"
	Neighbour          Code = "neighbour"
	CaptureGaps        Code = "capture-gaps"
)

// Side is where a cause lies.
type Side string

// Sides.
const (
	Client  Side = "client"
	Server  Side = "server"
	Network Side = "network"
	Capture Side = "capture"
)

// Clock says what the time of a cause is measured on.
type Clock string

// Clocks: the latencies of all calls together, as the client's application saw them; or the time that passed.
const (
	Calls Clock = "calls"
	Wall  Clock = "wall"
)

// Certainty is how sure a cause is.
type Certainty string

// Certainties.
const (
	Certain  Certainty = "certain"
	Likely   Certainty = "likely"
	Possible Certainty = "possible"
)

// Evidence is a packet that shows a cause.
type Evidence struct {
	File          string `json:"file,omitempty"`
	Tap           string `json:"tap,omitempty"`
	Frame         uint64 `json:"frame"`
	Time          string `json:"time"`
	ConnectionKey string `json:"connection_key,omitempty"`
	XID           uint32 `json:"xid"`
	XIDHex        string `json:"xid_hex"`
}

// Cause is a reason why calls are slow.
type Cause struct {
	Code      Code       `json:"code"`
	Side      Side       `json:"side"`
	Where     string     `json:"where"`
	Time      int64      `json:"time_ns"` // what would be gone without the cause
	Clock     Clock      `json:"clock"`
	Share     float64    `json:"share"` // of that clock
	Certainty Certainty  `json:"certainty"`
	Text      string     `json:"text"`
	Evidence  []Evidence `json:"evidence"`
	Next      []string   `json:"next"`

	saves float64 // of the time that passed, to order causes by
}

// order puts first what is more than possible, and of that what costs most.
func (c *Cause) order(o *Cause) int {
	return cmp.Or(cmp.Compare(b2i(c.Certainty == Possible), b2i(o.Certainty == Possible)), cmp.Compare(o.saves, c.saves),
		cmp.Compare(c.Code, o.Code), cmp.Compare(c.Where, o.Where))
}

// Report is the answer. Causes are in the order of how much sooner the application would have been done without them.
type Report struct {
	Schema  string   `json:"schema"`
	Summary string   `json:"summary"`
	Calls   int64    `json:"calls_ns"`
	Wall    int64    `json:"wall_ns"`
	Causes  []*Cause `json:"causes"`
	// Point is where packets were captured: beside the client, beside the server, or between them; empty if that is not known.
	Point string `json:"capture_point,omitempty"`
	// Adapters is what counters of adapters tell of the calls in the same seconds, if the kernel's events were recorded with them.
	Adapters []adapter.Trouble `json:"adapters,omitempty"`

	first, last int64
	count       int      // calls
	several     bool     // inputs
	ends        []string // of the connections
	p99         int64
}

// Shown are the causes worth a line of their own: an idle mount is in the summary.
func (r *Report) Shown() []*Cause {
	if !r.Healthy() {
		return r.Causes
	}
	return slices.DeleteFunc(slices.Clone(r.Causes), func(c *Cause) bool { return c.Code == ClientIdle })
}

// Named names a packet for people: with its file if there are several.
func (r *Report) Named(e *Evidence) string {
	s := fmt.Sprintf("frame %d, XID 0x%08x, %s", e.Frame, e.XID, e.Time)
	if e.XID == 0 { // it is of no call
		s = fmt.Sprintf("frame %d, %s", e.Frame, e.Time)
	}
	if r.several && e.File != "" {
		return e.File + ", " + s
	}
	return s
}

// Healthy reports whether nothing was found that is more than possible.
func (r *Report) Healthy() bool {
	for _, c := range r.Causes {
		if c.Certainty != Possible {
			return false
		}
	}
	return true
}
