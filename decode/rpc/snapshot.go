package rpc

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (n *Names) Snapshot(p *snapshot.Plan) {
	p.Fixed(n)
	snapshot.Leave[Names](p, "attrs", "dir", "recent", "server", "addr", "tenant", "Limit")
	snapshot.After(p, func(b *nameTable) { b.rehash() })
}
