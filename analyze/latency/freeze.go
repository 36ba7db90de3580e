package latency

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part.
func (c *Collector) Freeze(p *freeze.Plan) {
	p.Fixed(c)
	freeze.Leave[Collector](p, "opt", "mu")
	freeze.Leave[Recorder](p, "called", "recentFlows") // found again
	freeze.Leave[Options](p, "Draw")
	freeze.Leave[wire](p, "Mutex")
}
