package tcp

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part. Streams belong to those who made them.
func (p *Pool) Freeze(plan *freeze.Plan) {
	plan.Fixed(p)
	freeze.Leave[Pool](plan, "options")
}
