package decode_test

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// TestSequencesOfTunnels: of a capture whose packets are all there, whole or in fragments, nothing is missing, and of others what was left out.
func TestSequencesOfTunnels(t *testing.T) {
	packets := load(t, "../samples/rocev2-nfs3-basic.pcap.zst")
	for _, k := range someKinds(func(k *wrap.Kind) bool {
		return slices.Contains([]string{"erspan2", "erspan3", "gre-sequence", "gre-all"}, k.Name)
	}) {
		whole := wrapped(packets, k, 0, 0)
		var cut []capture.Packet
		for i := range whole {
			cut = append(cut, fragments(&whole[i], 800)...)
		}
		var some []capture.Packet
		for i := range whole {
			if i%10 != 5 {
				some = append(some, whole[i])
			}
		}
		for _, c := range []struct {
			name    string
			packets []capture.Packet
			missing int
		}{
			{"whole", whole, 0},
			{"in fragments", cut, 0},
			{"the fragments in such a tunnel", wrapped(slices.Clone(cut), k, 0, 0), 0},
			{"some left out", some, len(whole) - len(some)},
		} {
			for _, trackers := range []int{0, 2} {
				_, s := run(t, number(slices.Clone(c.packets)), 64, decode.Options{Trackers: trackers})
				if q := s.Sequences; q.Packets == 0 || q.Missing != uint64(c.missing) || (q.First > 0) != (c.missing > 0) {
					t.Errorf("%s, %s, %d trackers: %+v, want %d missing", k.Name, c.name, trackers, q, c.missing)
				}
			}
		}
	}
}
