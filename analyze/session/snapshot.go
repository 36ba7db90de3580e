package session

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (r *Recorder) Snapshot(p *snapshot.Plan) {
	p.Fixed(r)
	snapshot.Leave[Recorder](p, "mu", "view", "live", "limit")
	snapshot.Leave[series](p, "at", "from", "to")
}
