package link

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (r *Reassembler) Snapshot(p *snapshot.Plan) {
	p.Fixed(r)
	snapshot.Leave[Reassembler](p, "options", "out")
}
