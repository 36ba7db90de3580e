package run

import (
	"slices"
	"time"
)

// postponed is a call that will be sent again.
type postponed struct {
	at   time.Time
	call *call
}

// postponements are the calls that will be sent again.
type postponements struct {
	patience time.Duration // how long the server may put a call off
	list     []postponed
	grace    *call // that asks whether the server's grace period is over; nil outside
}

func (p *postponements) add(at time.Time, c *call) { p.list = append(p.list, postponed{at, c}) }

// due takes a call that is due at a time; nil if there is none.
func (p *postponements) due(now time.Time) *call {
	i := slices.IndexFunc(p.list, func(x postponed) bool { return !x.at.After(now) })
	if i < 0 {
		return nil
	}
	c := p.list[i].call
	p.list = slices.Delete(p.list, i, i+1)
	return c
}

// next is the time until the next one is due; 0 if there is none.
func (p *postponements) next() (next time.Duration) {
	for i := range p.list {
		if d := time.Until(p.list[i].at); next == 0 || d < next {
			next = max(d, time.Microsecond)
		}
	}
	return next
}

// inGrace is how long a call waits that the server has put off in its grace period: one call asks again and again, after its wait, and
// the others wait for that.
func (p *postponements) inGrace(c *call, wait time.Duration) time.Duration {
	if p.grace == nil {
		p.grace = c
	}
	if p.grace != c {
		return p.patience
	}
	return wait
}

// graceOver lets the calls that wait for the end of the grace period go, once the one that asks has got another answer, or none.
func (p *postponements) graceOver(c *call) {
	if p.grace != c {
		return
	}
	p.grace = nil
	for i := range p.list {
		p.list[i].at = time.Now()
	}
}
