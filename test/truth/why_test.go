package truth_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/truth"
	"github.com/rpcrdma/toolkit/internal/units"
)

var captures = flag.String("captures", samples, "folder of captures, each with its NAME.truth.json or NAME.truth, for TestWhy")

// TestWhy: nothing that is certain or likely, of a whole capture or of an interval of it, contradicts what the kernels measured; and losses,
// restarts and recalls are named.
func TestWhy(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*captures, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in %s (%v)", *captures, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, _, _ := strings.Cut(name, ".")
			path := filepath.Join(*captures, base+".truth")
			if _, err := os.Stat(path); err != nil {
				path += ".json"
			}
			kernel, err := truth.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			whole, parts := why(t, file)
			for i, rep := range append(parts, whole) {
				for _, c := range rep.Causes {
					if c.Certainty == diagnosis.Possible {
						continue
					}
					if reason := contradicts(kernel, c); reason != "" {
						t.Errorf("report %d of %d: %s; but %s", i+1, len(parts)+1, c.Text, reason)
					}
				}
			}
			if w := expected(kernel); w != "" && !slices.ContainsFunc(whole.Causes, func(c *diagnosis.Cause) bool { return c.Code == w }) {
				t.Errorf("%s is not named: %s", w, whole.Summary)
			}
		})
	}
}

// why diagnoses a capture, and intervals of it.
func why(t *testing.T, file string) (whole *diagnosis.Report, parts []*diagnosis.Report) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := diagnosis.New(diagnosis.Options{File: filepath.Base(file), Live: true})
	opt := decode.Options{Observers: []decode.Observer{{Closed: d.Closed}}}
	d.Attach(&opt, 64<<20, nil)
	var v rpc.View
	n := 0
	err = decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		d.Transaction(&v)
		if n++; n%16 == 0 {
			d.Roll()
			if rep, _ := d.Interval(); rep != nil {
				parts = append(parts, rep)
			}
		}
	}).Run(r)
	if err != nil {
		t.Fatal(err)
	}
	return d.Report(), parts
}

// contradicts says what the kernels' record has against a cause.
func contradicts(k *truth.Truth, c *diagnosis.Cause) string {
	var served, away int64 // by the server's threads; the rest of the client's round trips
	for _, x := range k.Calls {
		n := int64(0)
		for _, s := range x.Sends {
			n += int64(s.ServerUS) * 1000
		}
		served += n
		away += max(int64(x.RTT)*1000-n, 0)
	}
	netem := k.Scenario["NETEM_IN"] + " " + k.Scenario["NETEM_OUT"]
	switch c.Code {
	case diagnosis.Outage:
		if k.Scenario["WORKLOAD"] != "restart" {
			return "the server was there all the time"
		}
		return ""
	case diagnosis.LossRecovery:
		if !strings.Contains(netem, "loss") && !strings.Contains(netem, "reorder") {
			return "the path lost nothing"
		}
	case diagnosis.PathDelay, diagnosis.PathStall:
		if !strings.Contains(netem, "delay") {
			return "the path delayed nothing"
		}
	case diagnosis.Pause, diagnosis.Congestion, diagnosis.LinkFull:
		if !strings.Contains(netem, "rate") {
			return "nothing on the path slows anybody"
		}
	case diagnosis.Recall:
		if len(k.Callbacks) == 0 {
			return "the server recalled nothing"
		}
	}
	if c.Clock != diagnosis.Calls || len(k.Calls) == 0 {
		return ""
	}
	most := away
	if c.Side == diagnosis.Server {
		most = served
	}
	if c.Time > most+most/4 {
		return "the kernels measured " + units.DurationText(most) + " there in all calls"
	}
	return ""
}

// expected is the cause that a run has by its scenario; empty if there is none.
func expected(k *truth.Truth) diagnosis.Code {
	switch netem := k.Scenario["NETEM_IN"] + k.Scenario["NETEM_OUT"]; {
	case strings.Contains(netem, "loss"):
		return diagnosis.LossRecovery
	case k.Scenario["WORKLOAD"] == "restart":
		return diagnosis.Outage
	case k.Scenario["WORKLOAD"] == "recall" && len(k.Callbacks) > 0:
		return diagnosis.Recall
	}
	return ""
}
