package simulate

import (
	"cmp"
	"slices"
	"strings"
)

// Truth is what a run is known to be.
type Truth struct {
	With   Sums
	Causes []Cause // the costliest first; empty for a healthy run
}

// Cause is a cause that was switched on, and what would be gone without it. If there are others, what it costs by itself
// may differ.
type Cause struct {
	Code  string
	Sides []string // on which it may be said to be
	Gone  Sums
	Alone Sums
}

// Told is a run, and the same without each of its causes.
type Told struct {
	*Result
	causes []told
}

type told struct {
	*toggle
	without, alone, none *Result
}

// Tell runs a configuration, and again without each of its causes.
func Tell(c Config) *Told {
	t := &Told{Result: Run(c)}
	none := c
	for i := range switches {
		if s := &switches[i]; s.on(&c) {
			t.causes = append(t.causes, told{toggle: s})
			s.off(&none)
		}
	}
	healthy := Run(none)
	for i := range t.causes {
		x := &t.causes[i]
		x.none, x.without, x.alone = healthy, healthy, t.Result
		if len(t.causes) == 1 {
			break
		}
		without, alone := c, c
		x.off(&without)
		for k := range t.causes {
			if k != i {
				t.causes[k].off(&alone)
			}
		}
		x.without, x.alone = Run(without), Run(alone)
	}
	return t
}

// Truth is what a capture point may know between two times: of the calls that pass by it and begin and end in between.
func (t *Told) Truth(p Point, from, to int64) Truth {
	seen := make(map[[2]int]bool)
	truth := Truth{With: t.sums(p, func(c *Call) bool {
		in := c.Sent >= from && c.Replied < to
		seen[c.key()] = in
		return in
	})}
	of := func(r *Result) Sums { return r.sums(p, func(c *Call) bool { return seen[c.key()] }) }
	for _, x := range t.causes {
		truth.Causes = append(truth.Causes, Cause{
			Code: x.code, Sides: strings.Split(x.side(&t.Config), "|"),
			Gone: truth.With.less(of(x.without)), Alone: of(x.alone).less(of(x.none)),
		})
	}
	slices.SortStableFunc(truth.Causes, func(a, b Cause) int { return cmp.Compare(b.Gone.Wall, a.Gone.Wall) })
	return truth
}

func (c *Call) key() [2]int { return [2]int{c.client.h.index, c.Index} }

// sums adds up calls that pass by a capture point.
func (r *Result) sums(p Point, which func(*Call) bool) Sums {
	var list []*Call
	for _, c := range r.Calls {
		if which(c) {
			list = append(list, c)
		}
	}
	if p != AtClient {
		for _, c := range r.others {
			if which(c) {
				list = append(list, c)
			}
		}
	}
	return sums(list)
}

func (s Sums) less(o Sums) Sums {
	s.App -= o.App
	s.Latency -= o.Latency
	s.Wall -= o.Wall
	return s
}

// toggle says of a cause whose it is, and how it is switched off.
type toggle struct {
	code string
	side func(*Config) string
	on   func(*Config) bool
	off  func(*Config)
}

func always(side string) func(*Config) string { return func(*Config) string { return side } }

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

var switches = []toggle{
	{"path-delay", always("network"), func(c *Config) bool { return c.PathDelay != nil }, func(c *Config) { c.PathDelay = nil }},
	{"path-stall", func(c *Config) string {
		if c.PathStall.By != PausedByReceiver {
			return "network"
		}
		return either(c.PathStall.FromServer, "client", "server")
	}, func(c *Config) bool { return c.PathStall != nil }, func(c *Config) { c.PathStall = nil }},
	{"link-full", always("network"), func(c *Config) bool { return c.LinkFull != nil }, func(c *Config) { c.LinkFull = nil }},
	{"congestion", always("network"), func(c *Config) bool { return c.Congestion != nil }, func(c *Config) { c.Congestion = nil }},
	{"congestion", always("network"), func(c *Config) bool { return c.CrossTraffic != nil }, func(c *Config) { c.CrossTraffic = nil }},
	{"loss-recovery", always("network"), func(c *Config) bool { return c.Loss != nil }, func(c *Config) { c.Loss = nil }},
	{"receiver-not-ready", func(c *Config) string { return either(c.ReceiverNotReady.AtServer, "server", "client") },
		func(c *Config) bool { return c.ReceiverNotReady != nil }, func(c *Config) { c.ReceiverNotReady = nil }},
	{"read-depth", func(c *Config) string { return either(c.ReadDepth.ByServer, "server", "client") }, func(c *Config) bool { return c.ReadDepth != nil }, func(c *Config) { c.ReadDepth = nil }},
	{"server-time", always("server"), func(c *Config) bool { return c.ServerTime != nil }, func(c *Config) { c.ServerTime = nil }},
	{"server-threads", always("server"), func(c *Config) bool { return c.ServerThreads != nil }, func(c *Config) { c.ServerThreads = nil }},
	{"credits", func(c *Config) string { return either(c.Credits.Asked > 0, "client", "server") },
		func(c *Config) bool { return c.Credits != nil }, func(c *Config) { c.Credits = nil }},
	{"session-slots", func(c *Config) string { return either(c.SessionSlots.ByClient, "client", "server") },
		func(c *Config) bool { return c.SessionSlots != nil }, func(c *Config) { c.SessionSlots = nil }},
	{"client-read-response", always("client"), func(c *Config) bool { return c.ClientReadResponse != nil }, func(c *Config) { c.ClientReadResponse = nil }},
	{"client-idle", always("client"), func(c *Config) bool { return c.ClientIdle != nil }, func(c *Config) { c.ClientIdle = nil }},
	{"one-at-a-time", always("client"), func(c *Config) bool { return c.OneAtATime != nil }, func(c *Config) { c.OneAtATime = nil }},
	{"asked-to-wait", always("server"), func(c *Config) bool { return c.AskedToWait != nil }, func(c *Config) { c.AskedToWait = nil }},
	{"outage", func(c *Config) string { return either(c.Outage.Hang, "server", "server|network") }, func(c *Config) bool { return c.Outage != nil }, func(c *Config) { c.Outage = nil }},
	{"neighbour", always("client"), func(c *Config) bool { return c.Neighbour != nil }, func(c *Config) { c.Neighbour = nil }},
	{"recall", always("client"), func(c *Config) bool { return c.Recall != nil }, func(c *Config) { c.Recall = nil }},
	{"capture-gaps", always("capture"), func(c *Config) bool { return c.CaptureGaps != nil }, func(c *Config) { c.CaptureGaps = nil }},
}
