package simulate

import "slices"

// Truth is what a run is known to be.
type Truth struct {
	Seed   uint64  `json:"seed"`
	With   Sums    `json:"with"`
	Causes []Cause `json:"causes"` // the costliest first; empty for a healthy run
}

// Cause is a cause that was switched on, and the same run without it.
type Cause struct {
	Code    string `json:"code"`
	Side    string `json:"side"`
	Clock   string `json:"clock"`
	App     int64  `json:"extra_app_ns"`
	Latency int64  `json:"extra_latency_ns"`
	Wall    int64  `json:"extra_wall_ns"`
	Without Sums   `json:"without"`
}

// Time is what would be gone without the cause, on its clock.
func (c *Cause) Time() int64 {
	if c.Clock == "wall" {
		return c.Wall
	}
	return c.App
}

// Tell runs a configuration, and again without each of its causes.
func Tell(c Config) (*Result, Truth) {
	r := Run(c)
	t := Truth{Seed: c.Seed, With: r.Sums, Causes: []Cause{}}
	for _, s := range switches {
		if !s.on(&c) {
			continue
		}
		without := c
		s.off(&without)
		w := Run(without).Sums
		t.Causes = append(t.Causes, Cause{
			Code: s.code, Side: s.side(&c), Clock: s.clock, Without: w,
			App: r.Sums.App - w.App, Latency: r.Sums.Latency - w.Latency, Wall: r.Sums.Wall - w.Wall,
		})
	}
	slices.SortStableFunc(t.Causes, func(a, b Cause) int { return int(min(max(b.Wall-a.Wall, -1), 1)) })
	return r, t
}

// toggle says of a cause how it is switched off, whose it is, and which clock it slows: that of the calls, or
// the wall's if it keeps calls from being made.
type toggle struct {
	code  string
	clock string
	side  func(*Config) string
	on    func(*Config) bool
	off   func(*Config)
}

func always(side string) func(*Config) string { return func(*Config) string { return side } }

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

var switches = []toggle{
	{"path-delay", "calls", always("network"), func(c *Config) bool { return c.PathDelay != nil }, func(c *Config) { c.PathDelay = nil }},
	{"path-stall", "calls", func(c *Config) string {
		if c.PathStall.By != PausedByReceiver {
			return "network"
		}
		return either(c.PathStall.FromServer, "client", "server")
	}, func(c *Config) bool { return c.PathStall != nil }, func(c *Config) { c.PathStall = nil }},
	{"link-full", "calls", always("network"), func(c *Config) bool { return c.LinkFull != nil }, func(c *Config) { c.LinkFull = nil }},
	{"congestion", "calls", always("network"), func(c *Config) bool { return c.Congestion != nil }, func(c *Config) { c.Congestion = nil }},
	{"loss-recovery", "calls", always("network"), func(c *Config) bool { return c.Loss != nil }, func(c *Config) { c.Loss = nil }},
	{"receiver-not-ready", "calls", func(c *Config) string { return either(c.ReceiverNotReady.AtServer, "server", "client") },
		func(c *Config) bool { return c.ReceiverNotReady != nil }, func(c *Config) { c.ReceiverNotReady = nil }},
	{"read-depth", "calls", always("server|client"), func(c *Config) bool { return c.ReadDepth != nil }, func(c *Config) { c.ReadDepth = nil }},
	{"server-time", "calls", always("server"), func(c *Config) bool { return c.ServerTime != nil }, func(c *Config) { c.ServerTime = nil }},
	{"server-threads", "calls", always("server"), func(c *Config) bool { return c.ServerThreads != nil }, func(c *Config) { c.ServerThreads = nil }},
	{"credits", "wall", func(c *Config) string { return either(c.Credits.Asked > 0, "client", "server") },
		func(c *Config) bool { return c.Credits != nil }, func(c *Config) { c.Credits = nil }},
	{"session-slots", "wall", func(c *Config) string { return either(c.SessionSlots.ByClient, "client", "server") },
		func(c *Config) bool { return c.SessionSlots != nil }, func(c *Config) { c.SessionSlots = nil }},
	{"client-read-response", "calls", always("client"), func(c *Config) bool { return c.ClientReadResponse != nil }, func(c *Config) { c.ClientReadResponse = nil }},
	{"client-idle", "wall", always("client"), func(c *Config) bool { return c.ClientIdle != nil }, func(c *Config) { c.ClientIdle = nil }},
	{"one-at-a-time", "wall", always("client"), func(c *Config) bool { return c.OneAtATime != nil }, func(c *Config) { c.OneAtATime = nil }},
	{"asked-to-wait", "calls", always("server"), func(c *Config) bool { return c.AskedToWait != nil }, func(c *Config) { c.AskedToWait = nil }},
	{"outage", "calls", always("server|network"), func(c *Config) bool { return c.Outage != nil }, func(c *Config) { c.Outage = nil }},
	{"neighbour", "calls", always("client"), func(c *Config) bool { return c.Neighbour != nil }, func(c *Config) { c.Neighbour = nil }},
	{"capture-gaps", "calls", always("capture"), func(c *Config) bool { return c.CaptureGaps != nil }, func(c *Config) { c.CaptureGaps = nil }},
}
