package connections

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestConnectionResyncs: resyncs are shown where there are any, and nowhere
// else.
func TestConnectionResyncs(t *testing.T) {
	c := Connection{Connection: &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}}
	c.Sent[1].Resyncs = 3
	var b strings.Builder
	c.Detail(&b)
	if n := strings.Count(b.String(), "tracking restarted: 3 times"); n != 1 {
		t.Errorf("shown %d times in\n%s", n, b.String())
	}
	if s := string(c.append(nil, new(ndjson.Encoder))); strings.Count(s, `"resyncs":3`) != 1 || strings.Count(s, "resyncs") != 1 {
		t.Errorf("%s", s)
	}
}
