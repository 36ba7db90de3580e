package session

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part.
func (r *Recorder) Freeze(p *freeze.Plan) {
	p.Fixed(r)
	freeze.Leave[Recorder](p, "mu", "view", "lone", "live", "limit", "copies", "callers")
	freeze.Leave[series](p, "at", "from", "to")
}
