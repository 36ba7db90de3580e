package kernel

import (
	"cmp"
	"slices"
)

const (
	sideClient = iota
	sideServer
)

type clockKey struct {
	source uint16
	side   uint8
}

// Clock is how the clock of a trace differs from that of the capture: capture time = trace time + Offset. It
// is found from causes and effects. A client builds a call before it is on the wire, and records a reply
// after it was; a server takes a call from its queue after it was on the wire, and has its result before the
// reply is. Each call thus bounds the difference from both sides.
type Clock struct {
	File string `json:"file"`
	Side string `json:"side"` // client, server
	// Known says that there were bounds of both kinds. Otherwise the rest is
	// zero.
	Known  bool  `json:"known"`
	Offset int64 `json:"offset_ns"` // the middle between the bounds
	// Uncertainty is half of the distance between the bounds. If it is
	// negative, they contradict each other by twice that: the clocks ran apart
	// during the capture, or were set.
	Uncertainty int64 `json:"uncertainty_ns"`
	Calls       int   `json:"calls"` // that were used

	low, high   int64
	lows, highs int
}

// usable reports whether times of the trace can be placed among those of the capture. Clocks that ran apart have
// no one difference, and a part of a call could have any length, or less than none.
func (c *Clock) usable() bool { return c != nil && c.Known && c.Uncertainty >= 0 }

func (c *Clock) atLeast(d int64) {
	if c.lows == 0 || d > c.low {
		c.low = d
	}
	c.lows++
}

func (c *Clock) atMost(d int64) {
	if c.highs == 0 || d < c.high {
		c.high = d
	}
	c.highs++
}

func (p *pairing) clock(source uint16, side uint8) *Clock {
	k := clockKey{source, side}
	c := p.clocks[k]
	if c == nil {
		c = &Clock{File: p.files[source].Name, Side: [2]string{"client", "server"}[side]}
		p.clocks[k] = c
	}
	return c
}

// readClocks compares the clocks by the pairs that there are. Transactions with packets that were seen again tell nothing: nobody knows
// which copy the kernel took.
func (p *pairing) readClocks() {
	for i := range p.calls {
		c := &p.calls[i]
		if c.wire < 0 || !p.wires[c.wire].single() {
			continue
		}
		w, k := &p.wires[c.wire], p.clock(c.source, sideClient)
		if c.sends == 1 && c.marshal != 0 {
			k.atMost(w.first - c.marshal)
		}
		switch {
		case c.reply != 0 && c.sends <= 1:
			k.atLeast(w.last - c.reply)
		case c.awaited():
			k.atLeast(w.last - c.end)
		}
	}
	for i := range p.requests {
		q := &p.requests[i]
		if q.wire < 0 || !p.wires[q.wire].single() {
			continue
		}
		w, k := &p.wires[q.wire], p.clock(q.source, sideServer)
		if at := cmp.Or(q.decode, q.process); at != 0 { // over TCP only the second
			k.atLeast(w.callLast - at)
		}
		// Some kernels post the RDMA Writes of a result before this event.
		if q.done && !w.pushed && w.divided {
			k.atMost(w.response - q.end)
		}
	}
	for _, c := range p.clocks {
		c.Calls = max(c.lows, c.highs)
		if c.Known = c.lows > 0 && c.highs > 0; c.Known {
			c.Offset = c.low + (c.high-c.low)/2
			c.Uncertainty = (c.high - c.low) / 2
		}
	}
}

// list returns the clocks in the order of their files.
func (p *pairing) list() []*Clock {
	keys := make([]clockKey, 0, len(p.clocks))
	for k := range p.clocks {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b clockKey) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.side, b.side))
	})
	out := []*Clock{}
	for _, k := range keys {
		out = append(out, p.clocks[k])
	}
	return out
}
