package transaction

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (t *Tracker) Snapshot(p *snapshot.Plan) {
	t.reader.header.Payload, t.reader.err = nil, nil // they lie in what was read
	p.Fixed(t)
	if t.tracer != nil {
		p.Fixed(t.tracer)
	}
	snapshot.Leave[Tracker](p, "opt", "emit", "alone", "tracer", "scratch")
	snapshot.Leave[tracer](p, "limit", "attribute", "packet", "storage", "halves", "entries")
	snapshot.Leave[storage](p, "opt", "memory", "queue")
	snapshot.Leave[pool](p, "memory")
	snapshot.Leave[halves](p, "peers")
	snapshot.Leave[reader](p, "halves", "err")
	snapshot.Leave[protocol](p, "asked", "stats")
	snapshot.Leave[chunks](p, "opt", "stats", "storage", "halves", "entries", "tracer")
	snapshot.Leave[queue](p, "opt", "memory", "out")
	snapshot.Leave[Transaction](p, "fastCall", "fast") // a shortcut
	snapshot.Boxed[*conn](p)
	snapshot.After(p, func(h *half) { h.open.rehash() })
}

// rehash puts the calls into the places that this process looks for them.
func (o *openCalls) rehash() {
	old := o.slots
	if len(old) == 0 {
		o.n = 0
		return
	}
	size := minOpenCalls
	for size < len(old) {
		size *= 2
	}
	*o = openCalls{slots: make([]openCall, size)}
	for _, s := range old {
		if s.tx != nil {
			o.put(s.xid, s.tx)
		}
	}
}
