package diagnosis

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestOrderOfLossAndCongestion: what came first is said of a connection that was told of congestion.
func TestOrderOfLossAndCongestion(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		cnps        int
		told, again int64
		want        string
	}{
		{5, 10 * ms, 14 * ms, " Congestion was notified 4.0 ms before the first loss."},
		{5, 14 * ms, 10 * ms, " The first loss came 4.0 ms before congestion was notified: sending again may have made it worse."},
		{pacedLeast - 1, 10 * ms, 14 * ms, ""}, // a few notifications are no congestion
		{5, 10 * ms, 0, ""},
	} {
		k := &conn{id: 1, fabric: rdma.RoCEv2}
		lanes := &[2]lane{{cnps: c.cnps, cnpFirst: c.told}, {againFirst: c.again, seen: 1}}
		b := &batch{Recorder: New(Options{}), traffic: traffic{lanes: map[int]*[2]lane{1: lanes}}}
		f := &finding{code: LossRecovery, on: []int{1}, clock: Calls, certainty: Certain, time: ms, calls: 1}
		b.surelyLost(k, f, 10*ms, 0, 1)
		got := b.text(f, &Report{Calls: 10 * ms})
		if _, order, _ := strings.Cut(got, "behind the capture point."); order != c.want {
			t.Errorf("%d CNPs from %d, again from %d: %q, not %q", c.cnps, c.told, c.again, order, c.want)
		}
	}
}
