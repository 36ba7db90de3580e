package tcp

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part. Streams belong to those who made them.
func (p *Pool) Snapshot(plan *snapshot.Plan) {
	plan.Fixed(p)
	snapshot.Leave[Pool](plan, "options")
}
