package latency

import "github.com/rpcrdma/toolkit/decode/transaction"

// Durations are the phases of one transaction in nanoseconds. The duration of transaction.PhaseAck is
// negative if no acknowledgement was seen.
type Durations [transaction.NumPhases]int64

func durations(p *transaction.Phases) (d Durations) {
	for ph := range transaction.AllPhases() {
		d[ph] = int64(p.Of(ph))
	}
	return d
}
