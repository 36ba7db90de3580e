package iwarp

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part. It covers the Conns that somebody refers to, but not the Pool.
func (t *Tracker) Snapshot(p *snapshot.Plan) {
	p.Fixed(t)
	snapshot.Leave[Tracker](p, "handler", "tracer", "watcher", "shown", "o",
		"send", "fragment", "work", "saw", "segment")
	snapshot.Boxed[*half](p) // tcp.Consumer
}
