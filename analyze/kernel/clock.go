package kernel

import (
	"cmp"
	"math"
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

// Clock is how the clock of a trace differs from that of the capture: capture time = trace time + Offset, and a part of the time since At where
// one of them runs faster. It is found from causes and effects. A client builds a call before it is on the wire, and records a reply
// after it was; a server takes a call from its queue after it was on the wire, and has its result before the
// reply is. Each call thus bounds the difference from both sides.
type Clock struct {
	File string `json:"file"`
	Side string `json:"side"` // client, server
	// Known says that there were bounds of both kinds. Otherwise the rest is
	// zero.
	Known  bool  `json:"known"`
	Offset int64 `json:"offset_ns"` // the middle between the bounds
	// Drift is how much faster the capture's clock runs, in parts per million, from At on, a time of the trace. Both are 0 where one
	// difference fits all bounds.
	Drift float64 `json:"drift_ppm,omitempty"`
	At    int64   `json:"at_ns,omitempty"`
	// Uncertainty is half of the distance between the bounds. If it is
	// negative, they contradict each other by twice that: a clock was set during the capture.
	Uncertainty int64 `json:"uncertainty_ns"`
	Calls       int   `json:"calls"` // that were used

	low, high []bound
}

// bound is a limit of the difference at a time of the trace.
type bound struct{ at, difference int64 }

// mostDrift is how much faster than another one a clock may be, in parts per million: Linux corrects clocks by at most 500.
const mostDrift = 500

// usable reports whether times of the trace can be placed among those of the capture. Clocks that were set have
// no one difference, and a part of a call could have any length, or less than none.
func (c *Clock) usable() bool { return c != nil && c.Known && c.Uncertainty >= 0 }

// capture is the capture's time at a time of the trace.
func (c *Clock) capture(at int64) int64 { return at + c.Offset + drifted(at-c.At, c.Drift) }

func drifted(passed int64, ppm float64) int64 { return int64(float64(passed) * ppm / 1e6) }

// between returns the bounds of the offset at At if the clocks run apart at the given rate.
func (c *Clock) between(ppm float64) (low, high int64) {
	low, high = math.MinInt64, math.MaxInt64
	for _, b := range c.low {
		low = max(low, b.difference-drifted(b.at-c.At, ppm))
	}
	for _, b := range c.high {
		high = min(high, b.difference-drifted(b.at-c.At, ppm))
	}
	return low, high
}

// fit finds the offset, and a drift where there is none that fits all bounds: that which leaves most room between them.
func (c *Clock) fit() {
	c.Calls = max(len(c.low), len(c.high))
	if c.Known = len(c.low) > 0 && len(c.high) > 0; !c.Known {
		return
	}
	low, high := c.between(0)
	if low > high {
		c.At = c.low[0].at
		// The room is a concave function of the drift.
		from, to := -float64(mostDrift), float64(mostDrift)
		for range 64 {
			a, b := from+(to-from)/3, to-(to-from)/3
			lowA, highA := c.between(a)
			lowB, highB := c.between(b)
			if highA-lowA < highB-lowB {
				from = a
			} else {
				to = b
			}
		}
		if l, h := c.between(from); l <= h {
			low, high, c.Drift = l, h, from
		} else {
			c.At = 0
		}
	}
	c.Offset, c.Uncertainty = low+(high-low)/2, (high-low)/2
	c.low, c.high = nil, nil
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
			k.high = append(k.high, bound{c.marshal, w.first - c.marshal})
		}
		switch {
		case c.reply != 0 && c.sends <= 1:
			k.low = append(k.low, bound{c.reply, w.last - c.reply})
		case c.awaited():
			k.low = append(k.low, bound{c.end, w.last - c.end})
		}
	}
	for i := range p.requests {
		q := &p.requests[i]
		if q.wire < 0 || !p.wires[q.wire].single() {
			continue
		}
		w, k := &p.wires[q.wire], p.clock(q.source, sideServer)
		if at := cmp.Or(q.decode, q.process); at != 0 { // over TCP only the second
			k.low = append(k.low, bound{at, w.callLast - at})
		}
		// Some kernels post the RDMA Writes of a result before this event.
		if q.done && !w.pushed && w.divided {
			k.high = append(k.high, bound{q.end, w.response - q.end})
		}
	}
	for _, c := range p.clocks {
		c.fit()
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
