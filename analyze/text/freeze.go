package text

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part: columns and times of the lines to come depend on those before.
func (l *Lister) Freeze(p *freeze.Plan) {
	p.Fixed(l)
	freeze.Leave[Lister](p, "Width", "Color", "Name", "path", "chunks", "tail", "calls", "kept", "places", "failed", "other", "kinds", "lists", "whole")
	freeze.Leave[Clock](p, "Format", "from")
	freeze.Leave[hosts](p, "pairs")
}
