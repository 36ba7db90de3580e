package text

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part: columns and times of the lines to come depend on those before.
func (l *Lister) Snapshot(p *snapshot.Plan) {
	p.Fixed(l)
	snapshot.Leave[Lister](p, "Width", "Color", "Name", "path", "chunks", "tail", "other", "kinds", "lists", "explained", "piece")
	snapshot.Leave[Clock](p, "Format", "from")
	snapshot.Leave[hosts](p, "pairs")
}
