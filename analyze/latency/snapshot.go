package latency

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (c *Collector) Snapshot(p *snapshot.Plan) {
	p.Fixed(c)
	snapshot.Leave[Collector](p, "opt", "mu")
	snapshot.Leave[Recorder](p, "called", "recentFlows") // found again
	snapshot.Leave[Options](p, "Draw")
	snapshot.Leave[wire](p, "Mutex")
}
