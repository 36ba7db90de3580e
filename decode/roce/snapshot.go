package roce

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (t *Tracker) Snapshot(p *snapshot.Plan) {
	p.Fixed(t)
	snapshot.Leave[Tracker](p, "h", "hooks", "tracer", "watcher", "runs", "whole", "numbers", "limits",
		"cache", "epoch", "message", "told", "send", "frag", "fast", "saw", "work", "tenant", "tunnel", "within")
	snapshot.Leave[flow](p, "route", "plain") // shortcuts: found again with the next packet
}
