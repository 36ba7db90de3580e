package decode

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/link"
)

// Clock says whose timestamps count.
type Clock uint8

// Clocks.
const (
	ClockCapture Clock = iota // of the capture file
	// ClockERSPAN is the clock of the switch, for packets mirrored with ERSPAN type
	// III; all others keep the time of the capture.
	ClockERSPAN
)

// maxSwitches bounds the switches whose counters are followed.
const maxSwitches = 1024

// switchClock converts the timestamps of ERSPAN III to times. Those with IEEE 1588 seconds are used
// unchanged. The others count from an unknown instant: the first packet of a switch gets its capture time,
// and later ones are relative to it.
type switchClock struct {
	bases map[netip.Addr]*counter
}

// counter is a timestamp of 32 bits that wraps around.
type counter struct {
	last  uint32
	ticks int64 // since the first packet
	base  int64 // time of the capture of the first packet
}

// adjust returns the time of a frame that was captured at the given time.
func (c *switchClock) adjust(f *link.Frame, captured int64) int64 {
	t := f.Mirror()
	if t == nil || t.Granularity == link.NoClock || t.Granularity == link.ClockCustom {
		return captured
	}
	upper, lower := t.Clock>>32, uint32(t.Clock)
	if t.Granularity == link.ClockPTP && upper != 0 && lower < 1e9 {
		return int64(upper)*1e9 + int64(lower)
	}
	n := c.bases[t.Src]
	if n == nil {
		if len(c.bases) >= maxSwitches {
			return captured
		}
		if c.bases == nil {
			c.bases = make(map[netip.Addr]*counter)
		}
		n = &counter{last: lower, base: captured}
		c.bases[t.Src] = n
	}
	unit := int64(100)
	switch t.Granularity {
	case link.Clock100us:
		unit = 100_000
	case link.ClockPTP: // nanoseconds within an unknown second
		d := (int64(lower) - int64(n.last)) % 1e9
		switch {
		case d > 5e8:
			d -= 1e9
		case d < -5e8:
			d += 1e9
		}
		n.last, n.ticks = lower, n.ticks+d
		return n.base + n.ticks
	}
	// The signed difference of two counts handles wraps and packets out of order.
	n.ticks += int64(int32(lower - n.last))
	n.last = lower
	return n.base + n.ticks*unit
}
