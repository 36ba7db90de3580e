package why_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

// answer is what a program that knows the truth would say.
func answer(want []expected) *report {
	r := &report{}
	for _, e := range want {
		if !e.optional {
			c := claim{Code: e.codes[0], Side: e.sides[0], Time: e.gone.App, Clock: "calls", Certainty: "certain"}
			if e.gone.App < e.gone.Wall { // calls are not slow, they are not sent
				c.Time, c.Clock = e.gone.Wall, "wall"
			}
			r.Causes = append(r.Causes, c)
		}
	}
	return r
}

// TestMutants: answers that are wrong in one way are told from right ones.
func TestMutants(t *testing.T) {
	mutants := []struct {
		name   string
		mutate func(*report)
		caught bool
	}{
		{"none", func(*report) {}, false},
		{"sides are swapped", func(r *report) {
			for i := range r.Causes {
				switch c := &r.Causes[i]; c.Side {
				case "client":
					c.Side = "server"
				case "server":
					c.Side = "client"
				}
			}
		}, true},
		{"nothing is said", func(r *report) { r.Causes = nil }, true},
		{"nothing is more than possible", func(r *report) {
			for i := range r.Causes {
				r.Causes[i].Certainty = "possible"
			}
		}, true},
		{"times are three times as long", func(r *report) {
			for i := range r.Causes {
				r.Causes[i].Time *= 3
			}
		}, true},
		{"the server is always slow", func(r *report) {
			r.Causes = append(r.Causes, claim{Code: "server-time", Side: "server", Clock: "calls", Certainty: "certain"})
		}, true},
		{"the path is likely to be long", func(r *report) {
			r.Causes = slices.Insert(r.Causes, 0, claim{Code: "path-delay", Side: "network", Clock: "calls", Certainty: "likely"})
		}, true},
	}
	totals := make([]*outcome, len(mutants))
	for i := range totals {
		totals[i] = newOutcome()
	}
	list := simulate.Situations()
	for i := range list {
		s := &list[i]
		switch s.Name {
		case "healthy", "path-delay", "server-time", "credits, few granted", "client-read-response", "one-at-a-time", "outage, server", "receiver-not-ready", "loss":
		default:
			continue
		}
		c := s.Draw(3)
		c.Calls = min(c.Calls, 100)
		want := expect(s, &c, simulate.Tell(c).Truth(simulate.AtServer, 0, math.MaxInt64), simulate.AtServer)
		for k, m := range mutants {
			r := answer(want)
			m.mutate(r)
			totals[k].add(s.Name, judge(r, want))
		}
	}
	for k, m := range mutants {
		if failed := totals[k].failed(); (len(failed) > 0) != m.caught {
			t.Errorf("%s: what fails is %q; %q", m.name, failed, totals[k].findings)
		}
	}
}
