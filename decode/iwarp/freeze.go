package iwarp

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part. It covers the Conns that somebody refers to, but not the Pool.
func (t *Tracker) Freeze(p *freeze.Plan) {
	p.Fixed(t)
	freeze.Leave[Tracker](p, "handler", "tracer", "watcher", "shown", "o",
		"send", "fragment", "work", "saw", "segment")
	freeze.Boxed[*half](p) // tcp.Consumer
}
