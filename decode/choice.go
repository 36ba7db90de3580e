package decode

import "time"

// choice decides where transactions are consumed: by the tracking goroutine, in whose caches they are, or beside it. Which
// is faster depends on how long a cache line takes from one processor to the other, on what the consumer does, and on who else
// is busy. So both are tried for a while, now and then, and what took less time is done in between.
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

// phase is what a choice is about to learn.
type phase uint8

const (
	warming phase = iota
	tryingNear
	tryingFar
	keeping
)

// tryPackets is how many packets a trial takes, and how many are not measured at the beginning. Tests have less.
var tryPackets = 32 << 10

const (
	// Packets between two pairs of trials, as a multiple of tryPackets: at first, and after the same result again and again.
	keepFirst = 16
	keepMost  = 64
	// worth is how many hundredths of the time near must be saved beside: it costs more processor time.
	worth = 10
)

func newChoice() choice { return choice{near: true, until: tryPackets, keep: keepFirst} }

// tracked counts packets that were tracked. When it is time, it has the transactions consumed elsewhere.
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

// home has the tracking goroutine consume, as soon as nothing is left elsewhere.
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
