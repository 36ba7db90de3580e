package decode_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode"
)

// TestDirectionByPort: the port tells the server of a connection of iWARP, though the capture has cut the setup and the programs.
func TestDirectionByPort(t *testing.T) {
	packets := sample(t, "iwarp-nfs41-recall.pcap", 0)
	backward := func(o *outcome) map[uint32]bool {
		m := map[uint32]bool{}
		for _, r := range o.rows {
			if r.Backward {
				m[r.XID] = true
			}
		}
		return m
	}
	want := backward(decoded(packets, decode.Options{}))
	got := decoded(cutAt(packets, 96), decode.Options{})
	if len(want) == 0 || len(got.rows) == 0 {
		t.Fatalf("%d callbacks, %d transactions", len(want), len(got.rows))
	}
	for _, r := range got.rows {
		if r.Backward != want[r.XID] {
			t.Errorf("%#x: backward %v", r.XID, r.Backward)
		}
	}
}
