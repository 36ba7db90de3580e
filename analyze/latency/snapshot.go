package latency

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (c *Collector) Snapshot(p *snapshot.Plan) {
	p.Fixed(c)
	snapshot.Leave[Collector](p, "opt", "mu", "kinds")
	snapshot.Leave[Recorder](p, "kinds", "ofKind", "recentFlows") // found again
	snapshot.Leave[Options](p, "Draw")
	snapshot.Leave[wire](p, "Mutex")
}
