package transaction_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// TestClean has no losses: all is known exactly, at either end.
func TestClean(t *testing.T) {
	each(t, nil, func(t *testing.T, traffic *rocetest.Traffic) {
		for _, records := range traffic.Taps {
			checkAll(t, traffic, records, track(records, keepData, roce.Limits{}), true)
		}
	})
}

// TestLossyNetwork loses packets on the way, which are then sent again: all
// that arrives has passed both capture points, so that all is known, and
// nothing is counted twice.
func TestLossyNetwork(t *testing.T) {
	for _, l := range []struct {
		name   string
		loss   rocetest.Loss
		rename bool
	}{
		{"before the capture", rocetest.Loss{Near: 0.03}, false},
		{"between", rocetest.Loss{Middle: 0.03}, false},
		{"behind", rocetest.Loss{Far: 0.03, AckLost: 0.1}, false},
		{"everywhere", rocetest.Loss{Near: 0.03, Middle: 0.03, Far: 0.03, AckLost: 0.05, NotNow: 0.1}, false},
		{"position named", rocetest.Loss{Near: 0.03, Middle: 0.03, Far: 0.03}, true},
		{"copies", rocetest.Loss{Copied: 0.1}, false},
		{"not ready", rocetest.Loss{NotNow: 0.3}, false},
	} {
		t.Run(l.name, func(t *testing.T) {
			each(t, func(c *rocetest.Config) { c.Loss, c.Rename = l.loss, l.rename }, func(t *testing.T, traffic *rocetest.Traffic) {
				for _, records := range traffic.Taps {
					checkAll(t, traffic, records, track(records, keepData, roce.Limits{}), false)
				}
			})
		})
	}
}
