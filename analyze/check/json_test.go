package check_test

import (
	"encoding/json"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
)

// Findings, rules and the summary are valid JSON with what the schema says.
func TestJSON(t *testing.T) {
	var e ndjson.Encoder
	check.Breaches(func(c *check.Checker, findings []*check.Finding) {
		for _, f := range findings {
			var m map[string]any
			b := e.AppendFinding(nil, f)
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			for _, key := range []string{"schema", "rule", "number", "severity", "title", "source", "time", "frame", "connection", "fabric", "by", "by_address", "by_endpoint", "peer_address", "peer_endpoint", "expected", "seen"} {
				if _, ok := m[key]; !ok {
					t.Errorf("%s: no %s", f.Rule.ID, key)
				}
			}
			if m["schema"] != ndjson.FindingSchema {
				t.Errorf("schema %v", m["schema"])
			}
		}
		var m struct {
			Schema                  string
			Errors, Warnings, Notes uint64
			Rules                   []struct {
				Rule     string
				Findings uint64
			}
		}
		if err := json.Unmarshal(ndjson.AppendCheckSummary(nil, c), &m); err != nil {
			t.Fatal(err)
		}
		n := c.Totals()
		if m.Schema != ndjson.SummarySchema || m.Errors != n[check.Error] || m.Warnings != n[check.Warning] || m.Notes != n[check.Note] {
			t.Errorf("%+v", m)
		}
		sum := uint64(0)
		for _, x := range m.Rules {
			sum += x.Findings
		}
		if sum != uint64(len(findings)) {
			t.Errorf("%d findings in the summary, %d reported", sum, len(findings))
		}
	})
	for _, r := range check.Rules() {
		if b := ndjson.AppendRule(nil, r); !json.Valid(b) {
			t.Errorf("%s", b)
		}
	}
}
