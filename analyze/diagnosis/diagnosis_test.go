package diagnosis_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

// diagnose asks why a simulated capture is slow.
func diagnose(t *testing.T, run *simulate.Told, p simulate.Point) *diagnosis.Report {
	t.Helper()
	var b bytes.Buffer
	if err := run.WritePcap(&b, p); err != nil {
		t.Fatal(err)
	}
	in, err := capture.NewReader(&b, p.String(), capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := diagnosis.New(diagnosis.Options{File: p.String()})
	opt := decode.Options{Observers: []decode.Observer{{Closed: r.Closed}}}
	r.Attach(&opt, 64<<20, nil)
	var v rpc.View
	d := decode.New(opt, func(tx *transaction.Transaction) { v.Set(tx); r.Transaction(&v) })
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	return r.Report()
}

// situations are runs of the simulator by their seeds.
var situations = map[string]uint64{
	"healthy": 5, "healthy, several clients": 5, "healthy, 16 calls at a time": 5,
	"path-delay": 5, "path-delay of one connection": 5, "tail loss": 5,
	"server-time": 5, "server-time, COMMIT": 5, "server-time, cold READs": 5, "server-threads": 5, "asked-to-wait": 5,
	"outage, server": 5, "outage, path": 5, "outage, server hangs": 5,
	"credits, none granted": 5, "client-read-response": 5, "client-idle": 5, "one-at-a-time": 5, "capture-gaps": 5,
}

// TestSituations has runs of the simulator with one cause each, and healthy ones: at each capture point the cause comes first, on the
// right side, and nothing else is said to be certain or likely. The lane test/why judges the times over many runs.
func TestSituations(t *testing.T) {
	for name, seed := range situations {
		i := slices.IndexFunc(simulate.Situations(), func(s simulate.Situation) bool { return s.Name == name })
		if i < 0 {
			t.Errorf("there is no situation %q", name)
			continue
		}
		run := simulate.Tell(simulate.Situations()[i].Draw(seed))
		for p := range simulate.Point(simulate.Points) {
			truth := run.Truth(p, 0, math.MaxInt64)
			rep := diagnose(t, run, p)
			if len(truth.Causes) == 0 {
				if !rep.Healthy() {
					t.Errorf("%s, %v: %s", name, p, rep.Summary)
				}
				continue
			}
			want := truth.Causes[0]
			for k, c := range rep.Causes {
				if c.Certainty == diagnosis.Possible && k > 0 {
					continue
				}
				if string(c.Code) != want.Code || !slices.Contains(want.Sides, string(c.Side)) {
					t.Errorf("%s, %v: cause %d is %s of the %s: %s", name, p, k+1, c.Code, c.Side, c.Text)
				}
			}
			if len(rep.Causes) == 0 {
				t.Errorf("%s, %v: nothing found", name, p)
			}
		}
	}
}
