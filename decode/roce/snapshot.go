package roce

import "github.com/rpcrdma/toolkit/internal/snapshot"

// Snapshot implements snapshot.Part.
func (t *Tracker) Snapshot(p *snapshot.Plan) {
	p.Fixed(t)
	snapshot.Leave[Tracker](p, "h", "whole", "numbers", "limits", "epoch", "message", "captured", "fast", "tenant", "tunnel", "within")
	snapshot.Leave[messages](p, "h", "differs", "tracer", "watch", "send", "frag")
	snapshot.Leave[account](p, "shared")
	snapshot.Leave[flowTable](p, "cache")
	snapshot.Leave[pairing](p, "h", "findMemory")
	snapshot.Leave[rings](p, "limits", "account")
	snapshot.Leave[assembler](p, "limits", "account")
	snapshot.Leave[earlyPackets](p, "account")
	snapshot.Leave[flow](p, "route", "plain") // shortcuts: found again with the next packet
}
