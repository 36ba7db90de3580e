package check

import "github.com/rpcrdma/toolkit/internal/freeze"

// Freeze implements freeze.Part.
func (c *Checker) Freeze(p *freeze.Plan) {
	p.Fixed(c)
	freeze.Leave[Checker](p, "opt", "emit", "on", "view", "tc")
	freeze.After(p, func(f *Finding) {
		if f.Rule == nil || int(f.Rule.id) >= len(rules) {
			f.Rule = &rules[0] // a forged state
			return
		}
		f.Rule = &rules[f.Rule.id]
	})
}
