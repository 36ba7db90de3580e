package check

import (
	"fmt"
	"net"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// pauseRules judge the frames of Ethernet flow control.
type pauseRules struct {
	*verdicts
	stops [9]stop // by priority; 8 is PAUSE, which has none
}

// stop is what stops a priority, and its longest stop.
type stop struct {
	now, longest  rdma.Stopped
	first, number uint64 // of the packet that began each
	from, by      [6]byte
	resumed       bool // the longest
}

// pauseStorm is how long a priority may be stopped without a break, in nanoseconds: then watchdogs of switches act.
const pauseStorm = stall

// pause takes a frame that may be one of flow control.
func (c *pauseRules) pause(v *decode.PacketView) {
	var p link.Pause
	if c.on[rulePaused] == Off || !v.Frame.Pause(&p) {
		return
	}
	for i, quanta := range p.Quanta {
		switch {
		case !p.PerPriority:
			c.take(8, p.Quanta[0], v)
			return
		case p.Priorities&(1<<i) != 0:
			c.take(i, quanta, v)
		}
	}
}

func (c *pauseRules) take(priority int, quanta uint16, v *decode.PacketView) {
	x := &c.stops[priority]
	ended, resumed := x.now.Take(quanta, v.Packet.Time)
	x.ended(&ended, resumed)
	if x.now.Frames == 1 {
		x.first, x.from = v.Packet.Number, [6]byte{}
	}
	const source = 6
	if p := v.Packet; quanta > 0 && p.Link == capture.LinkEthernet && len(v.Frame.Tunnels) == 0 && len(p.Data) >= 2*source {
		x.from = [6]byte(p.Data[source:])
	}
}

// ended notes a stop that is over.
func (x *stop) ended(s *rdma.Stopped, resumed bool) {
	if s.Frames > 0 && s.Least() >= x.longest.Least() {
		x.longest, x.number, x.by, x.resumed = *s, x.first, x.from, resumed
	}
}

// storms reports the priorities that were stopped for long.
func (c *pauseRules) storms() {
	for i := range c.stops {
		x := &c.stops[i]
		x.ended(&x.now, false)
		if x.longest.Frames == 0 {
			continue
		}
		least := x.longest.Least()
		if least < pauseStorm {
			c.ok(rulePaused)
			continue
		}
		what := fmt.Sprintf("priority %d", i)
		if i == 8 {
			what = "all priorities"
		}
		f := &Finding{Rule: &rules[rulePaused], Ref: rdma.Ref{Time: x.longest.Since, Number: x.number}, Expected: "stops that end within 100 ms"}
		f.Seen = fmt.Sprintf("%s stopped for at least %s by %d frames", what, units.Duration(least), x.longest.Frames)
		if x.by != ([6]byte{}) {
			f.Seen += " from " + net.HardwareAddr(x.by[:]).String()
		}
		f.Reaction = "resumed"
		if !x.resumed {
			f.Reaction = "no frame resumed it: it lasted until the stops were not repeated"
		}
		c.report(f)
	}
}
