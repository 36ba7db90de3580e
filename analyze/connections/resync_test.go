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

// TestNoDepths: MPA of revision 1 announces no depths, and 0 of revision 2 is a number.
func TestNoDepths(t *testing.T) {
	c := Connection{Connection: &rdma.Connection{ID: 1, Fabric: rdma.IWARP}}
	c.Setup = [2]rdma.Setup{{Message: rdma.SetupMPA, MPARevision: 1}, {Message: rdma.SetupMPA, MPARevision: 2}}
	rows := c.rows()
	if rows[0][6] != "-" || rows[1][6] != "0/0" {
		t.Errorf("%q, %q", rows[0][6], rows[1][6])
	}
	var b strings.Builder
	c.Detail(&b)
	if s := b.String(); strings.Count(s, ": no depths, revision 1") != 1 || strings.Count(s, ": answers 0 RDMA Reads at once, starts 0, revision 2") != 1 {
		t.Error(s)
	}
}
