package link

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part.
func (r *Reassembler) Freeze(p *freeze.Plan) {
	p.Fixed(r)
	freeze.Leave[Reassembler](p, "options", "out")
}
