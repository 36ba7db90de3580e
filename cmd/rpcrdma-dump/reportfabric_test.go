package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
)

// TestPausesWithoutResume: how long stops without a resume lasted is not known, which is not 0.
func TestPausesWithoutResume(t *testing.T) {
	rep := &fabric.Report{}
	rep.Congestion.Pauses = []fabric.Pause{
		{Priority: 3, Stops: 4, Quanta: 4 * 65535},
		{Priority: 5, Stops: 2, Resumes: 2, Quanta: 2 * 65535, Stopped: 1500},
		{Priority: -1, Resumes: 1},
	}
	var out bytes.Buffer
	p := fabricPrinter{w: &out, rep: rep}
	p.pauses()
	for _, want := range []string{`(?m)^3 +4 +0 262140 +- +-$`, `(?m)^5 +2 +2 +131070 1.500µs +-$`, `(?m)^all \(PAUSE\) +0 +1 +0 +0ns +-$`} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("%s\nwant %s", &out, want)
		}
	}
}
