package judge

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

func TestMadeUp(t *testing.T) {
	v := &Judge{load: &workload.Workload{}}
	v.load.Tables.Header.Payload = plan.Pattern
	b := make([]byte, 1000)
	plan.FillPattern(b, 3, 12345)
	if at := v.madeUp(b, 3, 12345); at >= 0 {
		t.Errorf("the pattern differs at %d", at)
	}
	clear(b[100:200]) // a hole
	if at := v.madeUp(b, 3, 12345); at >= 0 {
		t.Errorf("with a hole it differs at %d", at)
	}
	b[555] ^= 0x5a
	if at := v.madeUp(b, 3, 12345); at != 555 {
		t.Errorf("differs at %d, want 555", at)
	}
	v.load.Tables.Header.Payload = plan.Sparse
	clear(b)
	b[999] = 1
	if at := v.madeUp(b, 3, 0); at != 999 {
		t.Errorf("differs at %d, want 999", at)
	}
}
