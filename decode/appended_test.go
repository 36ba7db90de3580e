package decode_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode"
)

// TestAppended: what was replayed, or appended to the capture, is told as if it were new, although it has the same queue pairs, communication
// IDs, and PSNs.
func TestAppended(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup bool
	}{
		{"rocev2-nfs41-recall.pcap", true},
		{"rocev2-nfs41-midstream.pcap.zst", false},
	} {
		packets := sample(t, c.name, 0)
		once := decoded(packets, decode.Options{})
		span := time.Duration(packets[len(packets)-1].Time - packets[0].Time)
		for _, shift := range []struct {
			name string
			by   time.Duration
		}{
			{"the same times", 0},
			{"a day earlier", -24 * time.Hour},
			{"an hour later", time.Hour + span},
			{"at once", span + time.Millisecond},
		} {
			if shift.name == "at once" && !c.setup {
				continue // it could be retransmissions
			}
			t.Run(c.name+" "+shift.name, func(t *testing.T) {
				again := slices.Clone(packets)
				for i := range again {
					again[i].Time += int64(shift.by)
				}
				got := decoded(slices.Concat(packets, again), decode.Options{})
				want := &outcome{rows: slices.Concat(once.rows, once.rows)}
				got.equal(t, want)
				for _, k := range got.conns {
					if n := k.Sent[0].Retransmitted + k.Sent[1].Retransmitted; n != 0 {
						t.Errorf("%d packets seen again", n)
					}
					if k.Setup[0].Seen() != c.setup || k.Setup[1].Seen() != c.setup {
						t.Errorf("setup %v, want %v", k.Setup[0].Seen(), c.setup)
					}
				}
				if n := len(got.conns); c.setup && n != 2*len(once.conns) {
					t.Errorf("%d connections, want %d", n, 2*len(once.conns))
				}
			})
		}
	}
}
