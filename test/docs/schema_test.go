package docs_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportSchema makes sure that docs/schema.md names every key of the JSON
// of report and diff.
func TestReportSchema(t *testing.T) {
	bin := filepath.Join(build(t), "rpcrdma-dump")
	schema := read(t, "docs/schema.md")
	for _, c := range []struct {
		section string
		args    []string
		values  []string // objects whose keys are values: statuses, phases, kinds
	}{
		{"## `rpcrdma.report/1`", []string{"report", "-T", "json", "-Y", "frame > 0 || xid >= 0", "samples/rocev2-nfs3-loss.both.pcapng.zst"}, []string{"phases", "errors_by_status", "events"}},
		{"## `rpcrdma.fabric/1`", []string{"report", "--view", "fabric", "-T", "json", "samples/rocev2-nfs3-loss.both.pcapng.zst"}, nil},
		{"## `rpcrdma.sessions/1`", []string{"sessions", "-T", "json", "samples/rocev2-nfs41-recall.pcap"}, []string{"sequence_errors", "callbacks"}},
		{"## `rpcrdma.operation/1`", []string{"operations", "-T", "ndjson", "samples/rocev2-nfs3-loss.both.pcapng.zst"}, nil},
		{"## `rpcrdma.diff/1`", []string{"diff", "-T", "json", "samples/rocev2-nfs3-loss.both.pcapng.zst", "samples/iwarp-nfs3-loss.pcap.zst"}, []string{"phases", "errors_by_status"}},
	} {
		_, text, ok := strings.Cut(schema, c.section)
		if !ok {
			t.Errorf("docs/schema.md has no section %s", c.section)
			continue
		}
		text, _, _ = strings.Cut(text, "\n## ")
		cmd := exec.Command(bin, c.args...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		var v any
		if err := json.NewDecoder(bytes.NewReader(out)).Decode(&v); err != nil {
			t.Fatal(err)
		}
		missing := make(map[string]bool)
		var walk func(v any, names bool)
		walk = func(v any, names bool) {
			switch v := v.(type) {
			case []any:
				for _, x := range v {
					walk(x, names)
				}
			case map[string]any:
				for k, x := range v {
					if !names && !strings.Contains(text, "`"+k+"`") && !strings.Contains(text, `"`+k+`"`) {
						missing[k] = true
					}
					values := false
					for _, n := range c.values {
						values = values || n == k && !names
					}
					walk(x, values)
				}
			}
		}
		walk(v, false)
		for k := range missing {
			t.Errorf("docs/schema.md does not name %q of %s", k, c.args[0])
		}
	}
}
