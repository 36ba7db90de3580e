package decode

import "time"

// choice decides who consumes transactions: the tracking goroutine, which has them in its caches (near), or helpers (far). Which
// is faster depends on the cost of moving a cache line between processors, on the consumer, and on the load of the machine. So
// a run measures both from time to time, and keeps to the faster one in between.
type choice struct {
	near    bool
	phase   phase
	begun   time.Time
	packets int     // since then
	until   int     // packets of the phase
	keep    int     // packets between trials, as a multiple of theirs
	took    float64 // nanoseconds a packet, near
	decided bool    // before
	better  bool    // near was, the last time
}

// phase is what a run measures, if anything.
type phase uint8

const (
	warming phase = iota
	tryingNear
	tryingFar
	keeping
)

// tryPackets is the length of a trial in packets, and of the beginning that is not measured. Tests set it to less.
var tryPackets = 32 << 10

const (
	// Packets between two pairs of trials, as a multiple of tryPackets: at first, and after the same result again and again.
	keepFirst = 16
	keepMost  = 64
	// worth is how many percent faster far must be than near, since it takes more CPU time.
	worth = 10
)

func newChoice() choice { return choice{near: true, until: tryPackets, keep: keepFirst} }

// tracked counts packets that were tracked, and goes on to the next phase when the present one is over.
func (h *handover) tracked(packets int) {
	c := &h.choice
	if c.packets += packets; c.packets < c.until || h.p.procs == 1 {
		return
	}
	switch c.phase {
	case warming, keeping:
		h.home()
		c.next(tryingNear, tryPackets)
	case tryingNear:
		if len(h.list.list) > 0 {
			h.here() // the memory of lists is counted only if they go elsewhere
		}
		c.took = c.each()
		c.near = false
		c.next(tryingFar, tryPackets)
	case tryingFar:
		h.finish() // what is still to be consumed belongs to the trial
		c.near = c.each()*100 > c.took*(100-worth)
		c.keep *= 2
		if !c.decided || c.near != c.better {
			c.keep = keepFirst
		}
		c.keep, c.decided, c.better = min(c.keep, keepMost), true, c.near
		c.next(keeping, c.keep*tryPackets)
	}
}

// home makes the tracking goroutine the consumer, once the helpers have consumed what they have.
func (h *handover) home() {
	if !h.choice.near {
		h.finish()
		h.choice.near = true
	}
}

func (c *choice) next(x phase, packets int) {
	c.phase, c.packets, c.until, c.begun = x, 0, packets, time.Now()
}

// each is the time of the phase, in nanoseconds a packet.
func (c *choice) each() float64 { return float64(time.Since(c.begun)) / float64(c.packets) }
