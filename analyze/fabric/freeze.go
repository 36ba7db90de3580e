package fabric

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part.
func (r *Recorder) Freeze(p *freeze.Plan) {
	p.Fixed(r)
	freeze.Leave[Recorder](p, "opt", "scale", "scratch")
	freeze.Boxed[*conn](p) // rdma.Connection.Watched
	freeze.Boxed[over](p)
}
