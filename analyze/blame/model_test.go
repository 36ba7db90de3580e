package blame_test

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// sums are the times of transactions, and their causes.
type sums struct {
	n     int
	total time.Duration
	lost  [rdma.NumCauses]time.Duration
}

func add(t testing.TB, packets []capture.Packet) (s sums) {
	t.Helper()
	b := blame.Lean(0)
	opt := decode.Options{Observers: []decode.Observer{b.Recorder.Observer()}}
	opt.Transactions.Ended = b.Ended
	traffic.Run(decode.New(opt, func(tx *transaction.Transaction) {
		holds.Transaction(t, tx)
		p, ok := tx.Phases()
		if !ok || tx.Blame == nil {
			return
		}
		s.n++
		s.total += p.Total
		for c := range s.lost {
			s.lost[c] += tx.Blame.Of(rdma.Cause(c))
		}
	}), packets, 64)
	return s
}

// TestModelExplained runs the same calls over a network that loses nothing, and over
// one that loses packets: the additional time must be found as lost time. Packets that are lost
// before the capture point, with none behind them, are not seen at all: then only a part can be
// found.
func TestModelExplained(t *testing.T) {
	for _, x := range []struct {
		name  string
		loss  rocetest.Loss
		tap   int
		least float64
	}{
		{"behind the client's tap", rocetest.Loss{Far: 0.01}, 0, 0.97},
		{"behind the server's tap", rocetest.Loss{Far: 0.01}, 1, 0.97},
		{"not ready", rocetest.Loss{NotNow: 0.03}, 1, 0.999},
		{"between", rocetest.Loss{Middle: 0.01}, 1, 0.95},
		{"before", rocetest.Loss{Near: 0.01}, 0, 0.4},
	} {
		c := rocetest.Config{Seed: 7, Calls: 400, Outstanding: 1, SameWork: true, CM: true, Data: 60000}
		clean := add(t, rocetest.Frames(rocetest.Make(c).Taps[x.tap]))
		c.Loss = x.loss
		lossy := add(t, rocetest.Frames(rocetest.Make(c).Taps[x.tap]))
		if clean.n != c.Calls || lossy.n != c.Calls || clean.lost[rdma.CauseRest] != clean.total {
			t.Fatalf("%s: %d calls, %d with losses, lost without any %v", x.name, clean.n, lossy.n, clean.lost)
		}
		delta, rest := lossy.total-clean.total, lossy.lost[rdma.CauseRest]-clean.lost[rdma.CauseRest]
		explained := 1 - float64(rest)/float64(delta)
		t.Logf("%s: %v to %v, of it %v: %.1f %% explained", x.name, clean.total, lossy.total, lossy.lost, 100*explained)
		if explained < x.least || explained > 1.02 {
			t.Errorf("%s: %.3f", x.name, explained)
		}
	}
}
