package decode

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
)

func TestSwitchClock(t *testing.T) {
	const start = 1700000000e9
	a, b := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")
	var c switchClock
	for _, s := range []struct {
		name     string
		src      netip.Addr
		unit     link.Granularity
		clock    uint64
		captured int64
		want     int64
	}{
		{"first of a switch", a, link.Clock100ns, 0xfffffff0, start, start},
		{"wraps", a, link.Clock100ns, 0x10, start + 9, start + 3200},
		{"out of order", a, link.Clock100ns, 0x0f, start + 10, start + 3100},
		{"another switch", b, link.Clock100us, 7, start + 20, start + 20},
		{"in its unit", b, link.Clock100us, 9, start + 30, start + 20 + 200_000},
		{"PTP", a, link.ClockPTP, 1700000001<<32 | 5, start, 1700000001e9 + 5},
		{"no clock", a, link.NoClock, 5, start + 77, start + 77},
		{"a unit of its own", a, link.ClockCustom, 5, start + 78, start + 78},
	} {
		f := link.Frame{Tunnels: []link.Tunnel{{Type: link.ERSPAN, Version: 3, Src: s.src, Clock: s.clock, Granularity: s.unit}}}
		if got := c.adjust(&f, s.captured); got != s.want {
			t.Errorf("%s: %d, want %d", s.name, got-start, s.want-start)
		}
	}
	var seconds switchClock
	for i, ns := range []uint64{999_999_000, 1000, 999_999_500, 2000} { // nanoseconds only
		f := link.Frame{Tunnels: []link.Tunnel{{Type: link.ERSPAN, Src: a, Clock: ns, Granularity: link.ClockPTP}}}
		if got := seconds.adjust(&f, start) - start; got != []int64{0, 2000, 500, 3000}[i] {
			t.Errorf("step %d: %d", i, got)
		}
	}
	if got := c.adjust(&link.Frame{}, start); got != start {
		t.Error("a packet without mirror has another time")
	}
}
