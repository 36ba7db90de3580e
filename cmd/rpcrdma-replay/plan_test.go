package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// command runs a command line.
func command(t *testing.T, in []byte, args ...string) (out, problems string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = execute(args, &cli.Streams{In: bytes.NewReader(in), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

const recall = "../../samples/rocev2-nfs41-recall.pcap"

func TestPlanCommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.plan.zst")
	out, problems, code := command(t, nil, "plan", recall, "-o", file)
	if code != cli.ExitOK || problems != "" {
		t.Fatalf("exit %d: %s", code, problems)
	}
	if !strings.Contains(out, "47 to replay") || !strings.Contains(out, "a callback") {
		t.Errorf("summary:\n%s", out)
	}
	again, _, code := command(t, nil, "plan", file)
	if code != cli.ExitOK || again != out {
		t.Errorf("exit %d, the summary of the plan:\n%s\nwant\n%s", code, again, out)
	}
	alone, _, code := command(t, nil, "plan", recall)
	if code != cli.ExitOK || alone != out {
		t.Errorf("exit %d, without -o:\n%s", code, alone)
	}
	var s plan.Summary
	out, _, code = command(t, nil, "plan", "-T", "json", file)
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != cli.ExitOK || s.Transactions != 50 || s.Ops.Inferred != 6 {
		t.Errorf("exit %d, %v: %+v", code, err, s)
	}
	if _, err := os.Stat(file + ".data"); err != nil {
		t.Error(err)
	}
	out, _, code = command(t, nil, "plan", "--dot", "-", "--ops", "20-22", file)
	if code != cli.ExitOK || !strings.HasPrefix(out, "digraph plan {\n") || strings.Count(out, "[label=\"2") != 3 || !strings.HasSuffix(out, "}\n") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v: want the plan and its data", list, err)
	}
}

func TestPlanPattern(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	out, _, code := command(t, nil, "plan", "--payload", "pattern", "--no-results", "../../samples/iwarp-nfs3-crc.pcap.zst", "-o", file)
	if code != cli.ExitOK || !strings.Contains(out, "4  synthesised: data made up") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if _, err := os.Stat(file + ".data"); !os.IsNotExist(err) {
		t.Errorf("side file: %v", err)
	}
	b, err := os.ReadFile(file)
	if err != nil || bytes.Contains(b, []byte(`"results"`)) || bytes.Contains(b, []byte(`"content"`)) {
		t.Errorf("%v: captured content in the plan", err)
	}
}

func TestPlanProblems(t *testing.T) {
	b, err := os.ReadFile(recall)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a.plan")
	out, problems, code := command(t, b[:len(b)/2+3], "plan", "-", "-o", file)
	if code != cli.ExitDamaged || problems == "" || !strings.Contains(out, "to replay") {
		t.Errorf("half a capture: exit %d, %s\n%s", code, problems, out)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.plan")
	if err := os.WriteFile(cut, whole[:len(whole)-40], 0o600); err != nil {
		t.Fatal(err)
	}
	neither := filepath.Join(dir, "neither.plan")
	if err := os.WriteFile(neither, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "name a capture", nil},
		{cli.ExitUsage, "-T is", []string{"-T", "xml", recall}},
		{cli.ExitUsage, "--payload is", []string{"--payload", "x", recall}},
		{cli.ExitUsage, "--ops is", []string{"--ops", "9-3", recall}},
		{cli.ExitUsage, "is a plan already", []string{file, "-o", "x"}},
		{cli.ExitUsage, "is a plan already", []string{file, "-o", file}},
		{cli.ExitUsage, "unknown flag", []string{"--bogus"}},
		{cli.ExitUsage, "--limit-calls 0: use a number of at least 1", []string{recall, "--limit-calls", "0"}},
		{cli.ExitFailure, "neither.plan: neither a plan nor a packet capture: starts with 68 65", []string{neither}},
		{cli.ExitFailure, "neither.plan: not a packet capture", []string{recall, neither}},
		{cli.ExitFailure, "no such file", []string{filepath.Join(dir, "none")}},
		{cli.ExitFailure, "", []string{recall, "-o", filepath.Join(dir, "none", "x")}},
		{cli.ExitFailure, "cut", []string{cut, "--dot", filepath.Join(dir, "x.dot")}},
	} {
		_, problems, code := command(t, nil, append([]string{"plan"}, c.args...)...)
		if code != c.code || !strings.Contains(problems, c.want) {
			t.Errorf("%q: exit %d, %s; want %d, %s", c.args, code, problems, c.code, c.want)
		}
	}
}
