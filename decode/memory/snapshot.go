package memory

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part: what is used goes with those who use it.
func (b *Budget) Snapshot(p *snapshot.Plan) {
	p.Fixed(b)
	snapshot.Leave[Budget](p, "limit", "accounts")
	snapshot.Leave[Account](p, "Evict", "budget", "share")
	for _, a := range b.accounts {
		p.Fixed(a)
	}
}
