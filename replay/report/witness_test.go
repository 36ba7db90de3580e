package report_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
)

// TestMissing: a call that the packets do not show is missing. One that was not answered
// need not be there.
func TestMissing(t *testing.T) {
	var packets bytes.Buffer
	out := capture.NewWriter(&packets, capture.WriterOptions{Format: capture.Pcapng, Link: capture.LinkRaw})
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	w := report.NewWitness()
	op := &plan.Op{ID: 1, What: "READ"}
	w.Observe(&report.Outcome{Op: op, XID: 7, Status: "NFS3_OK", Replied: time.Now()})
	w.Observe(&report.Outcome{Op: op, XID: 8})
	r, err := capture.NewReader(&packets, "self", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Check(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s.OK() || s.Calls != 1 || s.Missing != 1 || len(s.Details) != 1 || !w.Knows(7) || w.Knows(8) {
		t.Errorf("%+v", s)
	}
}
