package simulate

import (
	"math/rand/v2"
	"strings"
)

// Situation is a kind of slowness: which causes, with which ranges.
type Situation struct {
	Name  string
	Mixed bool // queues mix: its time is known less exactly
	IWARP bool
	set   func(r *rand.Rand, c *Config)
}

// Draw makes a run of a situation, with parameters drawn from a seed.
func (s *Situation) Draw(seed uint64) Config {
	c := Defaults(seed)
	r := stream(seed, s.Name, 0)
	c.Depth = 2 + r.IntN(7)
	c.Calls = 150 + r.IntN(250)
	c.Connections = pick(r, 1, 1, 1, 2, 4)
	c.LineRate = pick(r, int64(25e9), 40e9, 100e9, 200e9)
	c.MTU = pick(r, uint32(1024), 2048, 4096)
	c.Size = pick(r, 4, 8, 16, 32, 64, 128) << 10
	c.Propagation = 300 + r.Int64N(2000)
	c.AckTimeout = pick(r, 14, 14, 16, 18)
	c.AckTime = pick(r, 300, 600, 2*us, 5*us)
	c.Jitter = pick(r, 0, 200, 2*us)
	c.Handshake = r.IntN(2) == 0
	c.NFS4 = r.IntN(3) == 0
	c.Snap = pick(r, 0, 512)
	if stream(seed, s.Name, 1).IntN(6) == 0 {
		c.Connections = 8
	}
	s.set(r, &c)
	if s.IWARP {
		c.IWARP, c.DelayedAck = true, r.IntN(3) == 0
		c.AckTimeout = pick(r, 16, 16, 17) // no TCP waits for less than 200 ms
	}
	return c
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// between draws a number of a range, evenly on a logarithmic scale.
func between(r *rand.Rand, low, high int64) int64 {
	for n := r.Int64N(64); ; {
		v := low << n
		if v <= 0 || v > high {
			n = r.Int64N(max(n, 1))
			continue
		}
		return min(v+r.Int64N(v), high)
	}
}

const (
	us = int64(1_000)
	ms = 1_000 * us
)

// Situations are all of them. The parts of one that has two causes are called by the names of the others.
func Situations() []Situation {
	list := []Situation{
		{Name: "healthy", set: func(*rand.Rand, *Config) {}},
		{Name: "healthy, mixed sizes", set: func(r *rand.Rand, c *Config) { c.Size, c.Connections = 128<<10, 1+r.IntN(4) }},
		{Name: "healthy, 16 calls at a time", set: func(_ *rand.Rand, c *Config) { c.Depth = 16 }},
		{Name: "healthy, jitter", set: func(r *rand.Rand, c *Config) { c.Jitter = between(r, 3*us, 20*us) }},
		{Name: "healthy, several clients", set: func(r *rand.Rand, c *Config) { c.Clients, c.Calls = 2+r.IntN(7), 100 }},
		{Name: "healthy, small calls", set: func(_ *rand.Rand, c *Config) { c.Mix = Mix{Small: 1} }},
		{Name: "healthy, bursts", set: bursts},
		{Name: "healthy, adapters of software", set: software},
		{Name: "healthy, long tail", set: func(_ *rand.Rand, c *Config) { c.Spread = 1.2 }},
		{Name: "healthy, as many credits as calls", set: func(r *rand.Rand, c *Config) {
			c.Depth, c.Calls = pick(r, 16, 32, 64), 600
			c.Connections, c.Granted = 1, c.Depth
		}},
		{Name: "healthy, Read-Read", set: func(_ *rand.Rand, c *Config) { c.NFS4, c.ReadRead = false, true }},
	}
	list = append(list, pathSituations()...)
	list = append(list, serverSituations()...)
	list = append(list, clientSituations()...)
	list = append(list, pairs(list)...)
	list = append(list, drawn(list)...)
	return append(list, overTCP(list)...)
}

// bursts are calls that applications make together, as reading ahead and writing back do.
func bursts(r *rand.Rand, c *Config) { c.Depth, c.Burst = 8+r.IntN(25), between(r, 20*us, 500*us) }

// software are adapters that acknowledge now sooner, now later.
func software(r *rand.Rand, c *Config) { c.AckTime, c.AckSpread = between(r, 10*us, 60*us), 0.8 }

// drawn are situations of two causes that are drawn.
func drawn(list []Situation) []Situation {
	two := func(r *rand.Rand, c *Config) {
		list[r.IntN(len(list))].set(r, c)
		list[r.IntN(len(list))].set(r, c)
	}
	return []Situation{{Name: "two, drawn", Mixed: true, set: two}, {Name: "two others, drawn", Mixed: true, set: two}}
}

// overTCP are the situations that can occur over iWARP, too.
func overTCP(list []Situation) []Situation {
	var out []Situation
	for _, s := range list {
		c := s.Draw(1)
		if c.Congestion != nil || c.LinkFull != nil && c.LinkFull.Marks || strings.Contains(s.Name, "drawn") {
			continue
		}
		s.Name += ", iWARP"
		s.IWARP = true
		out = append(out, s)
	}
	return out
}

func pathSituations() []Situation {
	return []Situation{
		{Name: "path-delay", set: func(r *rand.Rand, c *Config) {
			c.PathDelay = &PathDelay{OneWay: between(r, 200*us, 20*ms), Share: r.Float64()}
		}},
		{Name: "path-delay, Read-Read", set: func(r *rand.Rand, c *Config) {
			c.NFS4, c.ReadRead = false, true
			c.PathDelay = &PathDelay{OneWay: between(r, 200*us, 20*ms), Share: r.Float64()}
		}},
		{Name: "path-delay, jitter", set: func(r *rand.Rand, c *Config) {
			c.PathDelay = &PathDelay{OneWay: between(r, 500*us, 10*ms), Share: r.Float64()}
			c.Jitter = c.PathDelay.OneWay / 40
		}},
		{Name: "path-delay, adapters of software", set: func(r *rand.Rand, c *Config) {
			software(r, c)
			c.PathDelay = &PathDelay{OneWay: between(r, 500*us, 10*ms), Share: r.Float64()}
		}},
		{Name: "path-delay, bursts", set: func(r *rand.Rand, c *Config) {
			bursts(r, c)
			c.PathDelay = &PathDelay{OneWay: between(r, 500*us, 10*ms), Share: r.Float64()}
		}},
		{Name: "path-delay of one client of several", set: func(r *rand.Rand, c *Config) {
			c.Clients = 2 + r.IntN(4)
			c.PathDelay = &PathDelay{OneWay: between(r, 500*us, 5*ms), Share: 1, First: true}
		}},
		{Name: "congestion by others, no marks", Mixed: true, set: func(r *rand.Rand, c *Config) {
			every := between(r, 500*us, 2*ms)
			c.CrossTraffic = &CrossTraffic{Every: every, For: every * (30 + r.Int64N(40)) / 100, FromServer: r.IntN(2) == 0}
		}},
		{Name: "path-delay of one connection", set: func(r *rand.Rand, c *Config) {
			c.Connections = 2 + r.IntN(3)
			c.PathDelay = &PathDelay{OneWay: between(r, 500*us, 5*ms), Share: r.Float64(), Connection: 1 + r.IntN(c.Connections)}
		}},
		{Name: "path-stall, unseen", Mixed: true, set: stall(Unseen)},
		{Name: "path-stall, receiver pauses", Mixed: true, set: stall(PausedByReceiver)},
		{Name: "path-stall, switch pauses", Mixed: true, set: stall(PausedBySwitch)},
		{Name: "link-full", Mixed: true, set: func(r *rand.Rand, c *Config) {
			c.Size, c.Depth = 256<<10, 8+r.IntN(9)
			c.Mix = pick(r, Mix{Read: 8, Small: 1}, Mix{Write: 8, Small: 1})
			c.LinkFull = &LinkFull{Rate: between(r, 2e9, 10e9)}
		}},
		{Name: "link-full, marks", Mixed: true, set: func(r *rand.Rand, c *Config) {
			c.Size, c.Depth = 256<<10, 8+r.IntN(9)
			c.Mix = pick(r, Mix{Read: 8, Small: 1}, Mix{Write: 8, Small: 1})
			c.LinkFull = &LinkFull{Rate: between(r, 2e9, 10e9), Marks: true}
		}},
		{Name: "congestion", Mixed: true, set: func(r *rand.Rand, c *Config) {
			c.Size, c.Depth = 128<<10, 4+r.IntN(13)
			server := r.IntN(3) > 0
			c.Mix = Mix{Read: 8, Small: 1}
			if !server {
				c.Mix = Mix{Write: 8, Small: 1}
			}
			c.Congestion = &Congestion{Share: 0.03 + 0.12*r.Float64(), FromServer: server}
		}},
		{Name: "loss", set: func(r *rand.Rand, c *Config) {
			c.Loss = &Loss{Rate: 0.01 + 0.04*r.Float64(), FromServer: r.IntN(2) == 0, Place: Place(r.IntN(3))}
		}},
		{Name: "tail loss", set: func(r *rand.Rand, c *Config) {
			c.Depth = 1 + r.IntN(2)
			c.Loss = &Loss{Rate: 0.02 + 0.03*r.Float64(), Tail: true, FromServer: true, Place: Place(r.IntN(3))}
		}},
		{Name: "tail loss, calls", set: func(r *rand.Rand, c *Config) {
			c.Depth = 1 + r.IntN(2)
			c.Loss = &Loss{Rate: 0.02 + 0.03*r.Float64(), Tail: true, Place: Place(r.IntN(3))}
		}},
	}
}

func stall(by Pauser) func(*rand.Rand, *Config) {
	return func(r *rand.Rand, c *Config) {
		c.Calls = 400 + r.IntN(200)
		c.PathStall = &PathStall{Every: between(r, 300*us, 2*ms), For: between(r, 500*us, 6*ms), FromServer: r.IntN(2) == 0, By: by}
	}
}

func serverSituations() []Situation {
	return []Situation{
		{Name: "server-time", set: func(r *rand.Rand, c *Config) { c.ServerTime = &ServerTime{Extra: between(r, 1*ms, 20*ms)} }},
		{Name: "server-time, cold READs", set: func(r *rand.Rand, c *Config) {
			c.ServerTime = &ServerTime{Extra: between(r, 2*ms, 20*ms), Op: Read, Share: 0.2 + 0.5*r.Float64()}
		}},
		{Name: "server-time, bursts", set: func(r *rand.Rand, c *Config) {
			bursts(r, c)
			c.ServerTime = &ServerTime{Extra: between(r, 1*ms, 10*ms)}
		}},
		{Name: "server-time, long tail", set: func(r *rand.Rand, c *Config) {
			c.ServerTime = &ServerTime{Extra: between(r, 1*ms, 10*ms), Spread: 1}
		}},
		{Name: "server-time, even", set: func(r *rand.Rand, c *Config) {
			c.Mix = Mix{Read: 4, Small: 4}
			c.ServerTime = &ServerTime{Extra: between(r, 1*ms, 20*ms), Spread: 0.03}
		}},
		{Name: "server-time, Read-Read", set: func(r *rand.Rand, c *Config) {
			c.NFS4, c.ReadRead, c.Mix = false, true, Mix{Read: 5, Small: 1}
			c.ServerTime = &ServerTime{Extra: between(r, 500*us, 5*ms), Op: Read, Data: between(r, 500*us, 5*ms)}
		}},
		{Name: "server-time, WRITE", set: func(r *rand.Rand, c *Config) {
			c.ServerTime = &ServerTime{Extra: between(r, 1*ms, 10*ms), Op: Write}
		}},
		{Name: "server-time, several clients", set: func(r *rand.Rand, c *Config) {
			c.Clients, c.Calls = 2+r.IntN(4), 100
			c.ServerTime = &ServerTime{Extra: between(r, 1*ms, 20*ms)}
		}},
		{Name: "server-time, COMMIT", set: func(r *rand.Rand, c *Config) {
			c.Mix.Commit = 2
			c.ServerTime = &ServerTime{Extra: between(r, 2*ms, 30*ms), Op: Commit}
		}},
		{Name: "server-threads", Mixed: true, set: func(r *rand.Rand, c *Config) {
			c.Depth, c.Size = 8+r.IntN(25), 64<<10
			c.Mix = pick(r, Mix{Write: 5, Small: 1}, Mix{Read: 3, Write: 3, Small: 2})
			c.ServerThreads = &ServerThreads{Threads: 1}
		}},
		{Name: "server-threads, bursts", Mixed: true, set: func(r *rand.Rand, c *Config) {
			bursts(r, c)
			c.Depth = max(c.Depth, 16)
			c.ServerThreads = &ServerThreads{Threads: 1}
		}},
		{Name: "server-threads, several", Mixed: true, set: func(r *rand.Rand, c *Config) {
			c.Depth, c.Size = 16+r.IntN(33), 64<<10
			c.ServerThreads = &ServerThreads{Threads: 2 + r.IntN(3)}
		}},
		{Name: "receiver-not-ready", set: func(r *rand.Rand, c *Config) {
			c.ReceiverNotReady = &ReceiverNotReady{
				Rate: 0.02 + 0.1*r.Float64(), Times: 1 + r.IntN(3), Timer: uint8(12 + r.IntN(8)), AtServer: r.IntN(3) > 0,
			}
		}},
		{Name: "credits, few granted", set: func(r *rand.Rand, c *Config) {
			c.Depth = 16 + r.IntN(17)
			c.Credits = &Credits{Granted: 1 + r.IntN(4)}
		}},
		{Name: "credits, none granted", set: func(r *rand.Rand, c *Config) {
			c.Depth = 8 + r.IntN(9)
			c.Credits = &Credits{}
		}},
		{Name: "credits, few asked for", set: func(r *rand.Rand, c *Config) {
			c.Depth = 16 + r.IntN(17)
			c.Credits = &Credits{Asked: 2 + r.IntN(3)}
		}},
		{Name: "session-slots", set: func(r *rand.Rand, c *Config) {
			c.Depth, c.NFS4 = 16+r.IntN(17), true
			c.SessionSlots = &SessionSlots{Slots: 1 + r.IntN(4)}
		}},
		{Name: "session-slots, by the client", set: func(r *rand.Rand, c *Config) {
			c.Depth, c.NFS4, c.Handshake = 16+r.IntN(17), true, true
			c.SessionSlots = &SessionSlots{Slots: 1 + r.IntN(4), ByClient: true}
		}},
		{Name: "asked-to-wait", set: func(r *rand.Rand, c *Config) {
			c.AskedToWait = &AskedToWait{Rate: 0.01 + 0.04*r.Float64(), Times: 1 + r.IntN(2), Wait: 100 * ms}
			if !c.NFS4 {
				c.AskedToWait.Wait = 5000 * ms
			}
		}},
		{Name: "asked-to-wait, grace", set: func(r *rand.Rand, c *Config) {
			c.NFS4, c.Mix.Open = true, 2
			c.AskedToWait = &AskedToWait{Rate: 0.01 + 0.04*r.Float64(), Times: 1 + r.IntN(3), Wait: 5000 * ms, Grace: true}
		}},
		{Name: "outage, server", set: outage(false)},
		{Name: "outage, path", set: outage(true)},
		{Name: "outage, server hangs", set: func(r *rand.Rand, c *Config) {
			outage(false)(r, c)
			c.Outage.Hang, c.Outage.Timer = true, pick(r, 0, 600*ms)
		}},
		{Name: "recall", set: func(r *rand.Rand, c *Config) {
			c.NFS4, c.Mix.Open, c.Handshake = true, 2, false
			c.Recall = &Recall{Rate: 0.1 + 0.3*r.Float64(), Hold: between(r, 20*ms, 200*ms), Wait: pick(r, 0, 100*ms)}
		}},
		{Name: "neighbour", Mixed: true, set: func(r *rand.Rand, c *Config) {
			c.Threads, c.Depth = 2, 1+r.IntN(2)
			c.Neighbour = &Neighbour{Depth: 16 + r.IntN(33), Calls: 1500, Extra: between(r, 50*us, 300*us)}
		}},
	}
}

func outage(path bool) func(*rand.Rand, *Config) {
	return func(r *rand.Rand, c *Config) {
		c.NFS4 = c.NFS4 && path
		c.Outage = &Outage{AtCall: c.Calls/4 + r.IntN(c.Calls/2), For: between(r, 1000*ms, 6000*ms), Path: path}
	}
}

func clientSituations() []Situation {
	return []Situation{
		{Name: "read-depth", Mixed: true, set: func(r *rand.Rand, c *Config) {
			c.Depth, c.Size, c.Mix, c.Handshake = 8+r.IntN(9), 256<<10, Mix{Write: 6, Small: 2}, true
			c.PathDelay = nil
			c.Propagation = between(r, 10*us, 50*us)
			c.ReadDepth = &ReadDepth{Depth: 1, ByServer: r.IntN(3) == 0}
		}},
		{Name: "client-read-response", set: func(r *rand.Rand, c *Config) {
			c.Mix, c.Depth = Mix{Read: 1, Write: 5, Small: 1}, 1+r.IntN(3)
			c.ClientReadResponse = &ClientReadResponse{Delay: between(r, 300*us, 5*ms)}
		}},
		{Name: "client-idle", set: func(r *rand.Rand, c *Config) {
			c.Depth = 1
			c.ClientIdle = &ClientIdle{Think: between(r, 2*ms, 50*ms)}
		}},
		{Name: "one-at-a-time", set: func(r *rand.Rand, c *Config) {
			c.Depth, c.Size, c.Calls = 32, 4<<10, 600
			c.OneAtATime = &OneAtATime{}
		}},
		{Name: "capture-gaps", set: func(r *rand.Rand, c *Config) {
			c.Calls = 600
			c.CaptureGaps = &CaptureGaps{Rate: 0.01 + 0.06*r.Float64()}
		}},
		{Name: "capture-gaps, many calls", set: func(r *rand.Rand, c *Config) {
			c.Calls, c.Depth = 1200, 16
			c.Credits, c.CaptureGaps = &Credits{Granted: 32}, &CaptureGaps{Rate: 0.01 + 0.06*r.Float64()}
		}},
	}
}

// pairs are situations of two causes.
func pairs(list []Situation) []Situation {
	var out []Situation
	for _, p := range [][2]string{
		{"path-delay", "server-time"},
		{"path-delay", "loss"},
		{"path-delay", "credits, few granted"},
		{"server-time", "receiver-not-ready"},
		{"server-time", "credits, few granted"},
		{"server-time, COMMIT", "tail loss"},
		{"server-time", "client-idle"},
		{"loss", "client-idle"},
		{"path-stall, unseen", "server-time"},
		{"path-delay", "capture-gaps"},
		{"server-time", "capture-gaps"},
		{"asked-to-wait", "path-delay"},
		{"asked-to-wait, grace", "client-idle"},
		{"server-threads", "server-time"},
		{"server-threads", "read-depth"},
		{"server-threads", "path-delay"},
		{"neighbour", "server-time"},
		{"read-depth", "path-delay"},
		{"client-read-response", "path-delay"},
		{"congestion", "loss"},
		{"loss", "capture-gaps"},
		{"receiver-not-ready", "path-delay"},
		{"tail loss", "path-delay"},
		{"session-slots", "server-time"},
		{"credits, few asked for", "capture-gaps"},
		{"recall", "path-delay"},
	} {
		var a, b *Situation
		for i := range list {
			switch list[i].Name {
			case p[0]:
				a = &list[i]
			case p[1]:
				b = &list[i]
			}
		}
		out = append(out, Situation{Name: p[0] + " and " + p[1], Mixed: true, set: func(r *rand.Rand, c *Config) { a.set(r, c); b.set(r, c) }})
	}
	return out
}
