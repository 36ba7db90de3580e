package roce

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part.
func (t *Tracker) Freeze(p *freeze.Plan) {
	p.Fixed(t)
	freeze.Leave[Tracker](p, "h", "memory", "keeper", "tracer", "watcher", "plainly", "whole", "numbers", "limits",
		"cache", "epoch", "aside", "message", "told", "send", "frag", "lean", "saw", "work", "tenant", "tunnel", "within")
	freeze.Leave[flow](p, "route", "plain") // shortcuts: found again with the next packet
}
