package rpc

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part.
func (n *Names) Freeze(p *freeze.Plan) {
	p.Fixed(n)
	freeze.Leave[Names](p, "attrs", "dir", "recent", "server", "addr", "tenant", "Limit")
	freeze.After(p, func(b *book) { b.rehash() })
}
