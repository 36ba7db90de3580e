package check

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (c *Checker) Snapshot(p *snapshot.Plan) {
	p.Fixed(c)
	snapshot.Leave[verdicts](p, "opt", "emit", "on", "view")
	snapshot.Leave[Checker](p, "transaction")
	snapshot.After(p, func(f *Finding) {
		if f.Rule == nil || int(f.Rule.id) >= len(rules) {
			f.Rule = &rules[0] // a forged state
			return
		}
		f.Rule = &rules[f.Rule.id]
	})
}
