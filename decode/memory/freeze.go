package memory

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part: what is used goes with those who use it.
func (b *Budget) Freeze(p *freeze.Plan) {
	p.Fixed(b)
	freeze.Leave[Budget](p, "limit", "accounts")
	freeze.Leave[Account](p, "Evict", "budget", "share")
	for _, a := range b.accounts {
		p.Fixed(a)
	}
}
