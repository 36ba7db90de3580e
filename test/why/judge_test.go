package why_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

// report is the JSON of rpcrdma-dump why, as docs/schema.md describes it.
type report struct {
	Schema  string  `json:"schema"`
	Summary string  `json:"summary"`
	Calls   int64   `json:"calls_ns"`
	Wall    int64   `json:"wall_ns"`
	Causes  []claim `json:"causes"`
}

// claim is a cause that is claimed.
type claim struct {
	Code      string  `json:"code"`
	Side      string  `json:"side"`
	Where     string  `json:"where"`
	Time      int64   `json:"time_ns"`
	Clock     string  `json:"clock"`
	Share     float64 `json:"share"`
	Certainty string  `json:"certainty"`
	Text      string  `json:"text"`
	Evidence  []struct {
		Frame uint64  `json:"frame"`
		Time  string  `json:"time"`
		XID   *uint32 `json:"xid"`
	} `json:"evidence"`
	Next []string `json:"next"`
}

func (c *claim) String() string {
	return fmt.Sprintf("%s (%s, %s) %s of %s, %s", c.Code, c.Side, c.Where, ms(c.Time), c.Clock, c.Certainty)
}

func ms(n int64) string { return fmt.Sprintf("%.2f ms", float64(n)/1e6) }

// Words of the contract.
var (
	codes = []string{
		"server-time", "server-threads", "path-delay", "path-stall", "pause", "link-full", "congestion", "loss-recovery", "receiver-not-ready",
		"read-depth", "credits", "session-slots", "client-read-response", "client-idle", "one-at-a-time", "recall", "asked-to-wait", "outage",
		"neighbour", "capture-gaps",
	}
	sides       = []string{"client", "server", "network", "capture"}
	clocks      = []string{"calls", "wall"}
	certainties = []string{"certain", "likely", "possible"}
)

// read reads a report, and holds it against the contract.
func read(b []byte, packets int) (*report, error) {
	r := &report{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, err
	}
	switch {
	case r.Schema != "rpcrdma.diagnosis/1":
		return nil, fmt.Errorf("schema is %q", r.Schema)
	case r.Summary == "":
		return nil, fmt.Errorf("no summary")
	case r.Causes == nil:
		return nil, fmt.Errorf("causes is no list")
	}
	weak := false
	for i := range r.Causes {
		c := &r.Causes[i]
		for _, w := range []struct {
			word string
			of   []string
		}{{c.Code, codes}, {c.Side, sides}, {c.Clock, clocks}, {c.Certainty, certainties}} {
			if !slices.Contains(w.of, w.word) {
				return nil, fmt.Errorf("%v: %q is none of %v", c, w.word, w.of)
			}
		}
		if weak && c.Certainty != "possible" {
			return nil, fmt.Errorf("%v comes behind one that is only possible", c)
		}
		weak = c.Certainty == "possible"
		clock := r.Calls
		if c.Clock == "wall" {
			clock = r.Wall
		}
		switch {
		case c.Text == "" || c.Where == "":
			return nil, fmt.Errorf("%v: no text, or no place", c)
		case c.Time < 0:
			return nil, fmt.Errorf("%v: a time cannot be negative", c)
		case math.Abs(c.Share-min(float64(c.Time)/float64(max(clock, 1)), 1)) > 0.01:
			return nil, fmt.Errorf("%v: its share is %v, not that of %s", c, c.Share, ms(clock))
		case !weak && len(c.Evidence) == 0 && c.Code != "capture-gaps":
			return nil, fmt.Errorf("%v: without evidence", c)
		}
		for _, e := range c.Evidence {
			if e.Frame == 0 || e.Frame > uint64(packets) {
				return nil, fmt.Errorf("%v: frame %d is evidence, of %d frames", c, e.Frame, packets)
			}
		}
	}
	return r, nil
}

// expected is a cause that a run has.
type expected struct {
	codes       []string // the right one, and others that say the same
	sides       []string
	gone, alone simulate.Sums
	untimed     bool // what it costs is nothing that a capture shows
	weak        bool // may be only possible
	optional    bool // too small to have to be named, or nothing at this capture point shows it
	tolerance   float64
}

func (e *expected) names(c *claim) bool {
	return slices.Contains(e.codes, c.Code) && slices.Contains(e.sides, c.Side)
}

// small reports whether a cause is hardly there, and a claim takes it for much.
func (e *expected) small(c *claim) bool {
	ok, off := e.timed(c)
	return e.optional && !ok && off > 2 && c.Share > 0.1
}

// timed reports whether the time of a claim is right, and off by how much in which direction.
func (e *expected) timed(c *claim) (bool, float64) {
	if e.untimed {
		return true, 0
	}
	best := math.Inf(1)
	for _, want := range e.times(c.Clock) {
		low, high := float64(max(min(want[0], want[1]), 1)), float64(max(want[0], want[1], 1))
		x, got := 0.0, float64(c.Time)
		if got < low {
			x = got/low - 1
		} else if got > high {
			x = got/high - 1
		}
		if math.Abs(x) < math.Abs(best) {
			best = x
		}
	}
	return math.Abs(best) <= e.tolerance, best
}

// times are what is right: what would be gone, as the applications or the wire see it; if there are other causes, up to
// what it costs by itself.
func (e *expected) times(clock string) [][2]int64 {
	if clock == "wall" {
		return [][2]int64{{e.gone.Wall, e.alone.Wall}}
	}
	return [][2]int64{{e.gone.App, e.alone.App}, {e.gone.Latency, e.alone.Latency}}
}

// verdict is what a report is worth.
type verdict struct {
	caused  bool // there was something to be found
	right   bool // it came first
	missing bool // nothing was claimed
	timed   bool // and its time was right
	error   float64
	claims  map[string]int // by certainty
	wrong   map[string]int
	notes   []string
}

// judge compares a report with what was to be found, the costliest first.
func judge(r *report, want []expected) *verdict {
	v := &verdict{claims: map[string]int{}, wrong: map[string]int{}}
	find := func(c *claim) *expected {
		for i := range want {
			if want[i].names(c) {
				return &want[i]
			}
		}
		return nil
	}
	for i := range r.Causes {
		c := &r.Causes[i]
		v.claims[c.Certainty]++
		if c.Clock == "calls" && r.Calls > 0 && c.Time > r.Calls && c.Code != "outage" {
			v.notes = append(v.notes, fmt.Sprintf("%v: it takes more than the %s there are", c, ms(r.Calls)))
			v.wrong[c.Certainty]++
			continue
		}
		e := find(c)
		if e == nil || c.Certainty != "possible" && e.small(c) {
			v.wrong[c.Certainty]++
			if c.Certainty != "possible" {
				v.notes = append(v.notes, "wrong: "+c.String())
			}
			continue
		}
		if ok, off := e.timed(c); !ok && c.Certainty == "certain" && !e.optional && (off > 2*e.tolerance || off < -2*e.tolerance) {
			v.wrong["certain"]++
			v.notes = append(v.notes, fmt.Sprintf("certain of a wrong time: %v, truth %s", c, e))
		}
	}
	must := slices.IndexFunc(want, func(e expected) bool { return !e.optional })
	if must < 0 {
		return v
	}
	v.caused = true
	main := &want[must]
	var first *claim
	if len(r.Causes) > 0 && (r.Causes[0].Certainty != "possible" || main.weak) {
		first = &r.Causes[0]
	}
	switch {
	case first == nil:
		v.missing = true
		note := "missing: " + main.String()
		if len(r.Causes) > 0 {
			note += "; said: " + r.Causes[0].String()
		}
		v.notes = append(v.notes, note)
		return v
	case main.names(first):
	case alike(find(first), main):
		main = find(first)
	default:
		if find(first) != nil {
			v.notes = append(v.notes, fmt.Sprintf("order: %v came first, not %v", first, main))
		}
		return v
	}
	v.right = true
	if v.timed, v.error = main.timed(first); !v.timed {
		v.notes = append(v.notes, fmt.Sprintf("time %+.0f %%: %v, truth %s", 100*v.error, first, main))
	}
	return v
}

// alike reports whether two causes cost about the same, so that either may come first.
func alike(a, b *expected) bool {
	if a == nil || a.untimed || b.untimed {
		return a != nil
	}
	return float64(max(a.gone.Wall, a.alone.Wall)) > 0.6*float64(b.gone.Wall)
}

func (e *expected) String() string {
	s := fmt.Sprintf("%s (%s) calls %s, latency %s, wall %s", e.codes[0], e.sides[0], ms(e.gone.App), ms(e.gone.Latency), ms(e.gone.Wall))
	if e.gone != e.alone {
		s += fmt.Sprintf("; by itself %s, %s, %s", ms(e.alone.App), ms(e.alone.Latency), ms(e.alone.Wall))
	}
	return s
}

// least is the share of a clock below which a cause need not be named.
const least = 0.03

// expect says what can be found at a capture point, of what a run has.
func expect(s *simulate.Situation, c *simulate.Config, t simulate.Truth, p simulate.Point) []expected {
	var list []expected
	for i := range t.Causes {
		x := &t.Causes[i]
		e := expected{codes: []string{x.Code}, sides: x.Sides, gone: x.Gone, alone: x.Alone, tolerance: 0.2}
		if s.Mixed {
			e.tolerance = 0.35
		}
		e.optional = float64(x.Gone.App) <= least*float64(t.With.App) && float64(x.Gone.Wall) <= least*float64(t.With.Wall)
		switch x.Code {
		case "congestion":
			if c.CrossTraffic != nil { // queues of others look like this, too
				e.codes = append(e.codes, "path-stall", "link-full", "path-delay")
			}
		case "link-full":
			if c.LinkFull.Marks {
				e.codes = append(e.codes, "congestion")
			}
		case "outage":
			if c.Outage.Hang {
				e.codes = append(e.codes, "server-time")
			}
		case "recall":
			switch {
			case c.Recall.Wait > 0:
				e.codes = append(e.codes, "asked-to-wait")
				e.sides = append(e.sides, "server")
			case p == simulate.AtClient: // the callback goes to another client
				e.codes, e.sides = []string{"server-time"}, []string{"server"}
			}
		case "path-stall":
			e.codes = append(e.codes, "pause")
			if (p == simulate.AtServer) == c.PathStall.FromServer && p != simulate.AtSwitch {
				e.sides = append(e.sides, "network") // no frame of the receiver comes by
			}
		case "loss-recovery":
			if c.Loss.Tail && !c.Loss.FromServer && p == simulate.AtServer {
				e.optional = e.optional || c.Loss.Place < simulate.BehindTap // it comes late: nothing shows since when it was under way
			}
		case "neighbour":
			// The calls of the server's other clients do not come by a client's capture point.
			if p == simulate.AtClient {
				e.codes = []string{"server-threads", "server-time"}
				e.sides = []string{"server"}
				e.optional = true
			}
		case "session-slots":
			if c.SessionSlots.Slots == 1 { // the wire does not show why no second call comes
				e.codes = append(e.codes, "one-at-a-time")
				e.sides = append(e.sides, "client")
			}
			if t.With.Calls < c.Calls { // how the session was made is not in the capture
				e.sides = append(e.sides, "server")
			}
		case "capture-gaps":
			e.untimed, e.optional = true, false
		case "client-idle":
			// Only where nothing else is to be said.
			e.weak = true
			e.optional = e.optional || len(t.Causes) > 1
		}
		list = append(list, e)
	}
	return append(list, also(c)...)
}

// also are things that are true of a run besides, and may be said.
func also(c *simulate.Config) []expected {
	var list []expected
	add := func(code, side string) {
		list = append(list, expected{codes: []string{code}, sides: []string{side}, optional: true, untimed: true})
	}
	if c.Depth == 1 || c.OneAtATime != nil {
		add("one-at-a-time", "client")
	}
	if c.Depth == 1 || c.OneAtATime != nil || c.Burst > 0 {
		add("client-idle", "client")
	}
	if c.Propagation+c.Jitter > 10_000 {
		add("path-delay", "network")
	}
	if c.Neighbour != nil {
		add("server-threads", "server")
	}
	if c.Outage != nil && c.Outage.Path { // what was lost meanwhile is sent again
		add("loss-recovery", "network")
	}
	return list
}
