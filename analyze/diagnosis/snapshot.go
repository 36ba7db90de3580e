package diagnosis

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (r *Recorder) Snapshot(p *snapshot.Plan) {
	p.Fixed(r)
	p.Fixed(r.watch)
	snapshot.Leave[Recorder](p, "opt", "mu", "adapters", "points", "final", "traffic", "compounds", "numbered")
	snapshot.Leave[watcher](p, "mu", "most")
}
