package simulate

// control is the rate of a queue pair as congestion notifications leave it (DCQCN, Zhu et al., SIGCOMM 2015,
// without its byte counter). The zero value sends at the rate of the line.
type control struct {
	current, target float64 // bits per second; 0 for the rate of the line
	alpha           float64
	stage           int
	ticking         bool
	notified        bool // since the last tick
}

const (
	controlTick  = 55_000
	controlGain  = 1.0 / 16
	fastRecovery = 5
)

// slower takes a notification.
func (c *control) slower(e *end) {
	line := float64(e.n.LineRate)
	if c.current == 0 {
		c.current, c.target, c.alpha = line, line, 1
	}
	c.target = c.current
	c.current = max(c.current*(1-c.alpha/2), line/500)
	c.alpha = (1-controlGain)*c.alpha + controlGain
	c.stage, c.notified = 0, true
	if !c.ticking {
		c.ticking = true
		e.n.after(controlTick, func() { c.tick(e) })
	}
}

// tick raises the rate again.
func (c *control) tick(e *end) {
	line := float64(e.n.LineRate)
	if !c.notified {
		c.alpha *= 1 - controlGain
	}
	c.notified = false
	if c.stage++; c.stage > fastRecovery {
		c.target = min(c.target+line/20, line)
	}
	c.current = (c.current + c.target) / 2
	if c.current > 0.99*line {
		*c = control{}
		return
	}
	e.n.after(controlTick, func() { c.tick(e) })
}

// pace decides when an end may send the packet after p.
func (e *end) pace(p *packet) {
	if e.rate.current > 0 && !p.ack {
		e.paced = e.n.now + int64(float64(p.onWire(e.n.LineRate))*float64(e.n.LineRate)/e.rate.current)
	}
}
