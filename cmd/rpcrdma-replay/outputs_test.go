package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// aPlan makes a plan from a capture, with the files that the plan reads.
func aPlan(t *testing.T, sample string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "trace.plan")
	if _, problems, code := command(t, nil, "plan", "-o", name, sample); code != 0 {
		t.Fatal(problems)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func outputsProgram() *clitest.Program {
	const n, in, out = clitest.Neither, clitest.Input, clitest.Output
	links := []string{"same name", "other spelling", "symbolic link", "hard link"}
	doIt := []string{"run", "IN", "builtin", "--yes", "--write", "--provider", "iwarp"}
	return &clitest.Program{
		Root:   newRootCommand(&cli.Streams{}),
		Sample: "../../samples/rocev2-nfs41-recall.pcap",
		Run: func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return execute(args, &cli.Streams{In: stdin, Out: stdout, Err: stderr})
		},
		Roles: map[string]clitest.Role{
			// Of the fabric.
			"--local": n, "--loop": n, "--link-bandwidth": n, "--model": n, "--dialect": n, "--registration": n, "--chunks": n,
			"--sec": n, "rpcrdma-replay run --ccache": in, "rpcrdma-replay run --client-keytab": in, "rpcrdma-replay run --principal": n, "rpcrdma-replay run --service": n,
			"rpcrdma-replay serve --users": in,
			"--credit-policy":              n, "--provider": n, "--since": n, "--until": n, "--format": n, "--payload": n, "--same-server": n, "--fault": n, "--keytab": in, "--sysfs": in,
			"rpcrdma-replay plan --output": out, "rpcrdma-replay plan --dot": out, "rpcrdma-replay plan --ops": n,
			// --dir of run and bench is a directory of the server, and so is what
			// they do there.
			"rpcrdma-replay run --dir": n, "rpcrdma-replay run --dir3": n, "rpcrdma-replay run --mount": n, "rpcrdma-replay bench --mount": n, "rpcrdma-replay run --nlm": n, "rpcrdma-replay run --timing": n, "rpcrdma-replay run --max-bytes": n,
			"rpcrdma-replay run --verify": n, "rpcrdma-replay run --ignore": n, "rpcrdma-replay run --layout": n,
			"rpcrdma-replay run --report": out, "rpcrdma-replay run --junit": out, "rpcrdma-replay run --baseline": in, "rpcrdma-replay run --capture": out, "rpcrdma-replay run --resume": out,
			"rpcrdma-replay serve --listen": n, "rpcrdma-replay serve --dir": in, "rpcrdma-replay serve --state": n, "rpcrdma-replay serve --memory": n, "rpcrdma-replay serve --playback": in,
			"rpcrdma-replay serve --export": n, "rpcrdma-replay serve --squash": n, "rpcrdma-replay serve --buffers": n, "rpcrdma-replay serve --capture": out,
			"rpcrdma-replay bench --outstanding": n, "rpcrdma-replay bench --min-chunk": n, "rpcrdma-replay bench --mtu": n, "rpcrdma-replay bench --clients": n,
			"rpcrdma-replay bench --credits": n, "rpcrdma-replay bench --client-factor": n, "rpcrdma-replay bench --server-factor": n,
			"rpcrdma-replay bench --job": n, "rpcrdma-replay bench --nfs": n, "rpcrdma-replay bench --size": n, "rpcrdma-replay bench --inline": n,
			"rpcrdma-replay bench --file-size": n, "rpcrdma-replay bench --preset": n, "rpcrdma-replay bench --dir": n,
			"rpcrdma-replay bench --csv": out, "rpcrdma-replay bench --svg": out,
		},
		Cases: []clitest.Case{
			{Flag: "rpcrdma-replay plan --output", Args: []string{"plan", "IN", "-o", "OUT"}},
			{Flag: "rpcrdma-replay plan --output", Args: []string{"plan", "IN", "-o", "DIR/x.plan"}, In: "x.plan.data", Only: links[:1]},
			{Flag: "rpcrdma-replay plan --output", Args: []string{"plan", "IN", "-o", "DIR/x.plan"}, Out: "x.plan.data", Only: links[2:]},
			{Flag: "rpcrdma-replay plan --dot", Args: []string{"plan", "IN", "--dot", "OUT"}},
			{Flag: "rpcrdma-replay plan --dot", Args: []string{"plan", "IN", "--dot", "OUT"}, Data: aPlan, Only: links},
			{Flag: "rpcrdma-replay plan --dot", Args: []string{"plan", "IN", "--dot", "DIR/x", "-o", "DIR/x"}, Only: links[:1]},
			{Flag: "rpcrdma-replay run --report", Args: append(doIt, "--report", "OUT"), Only: links},
			{Flag: "rpcrdma-replay run --report", Args: append(doIt, "--report", "OUT"), Data: aPlan, Only: links},
			{Flag: "rpcrdma-replay run --report", Args: append(doIt, "--report", "DIR/x", "--capture", "DIR/x"), Only: links[:1]},
			{Flag: "rpcrdma-replay run --junit", Args: append(doIt, "--junit", "OUT"), Only: links},
			{Flag: "rpcrdma-replay run --capture", Args: append(doIt, "--capture", "OUT"), Only: links},
			{Flag: "rpcrdma-replay run --resume", Args: []string{"run", "IN", "127.0.0.1:1", "--yes", "--provider", "tcp", "--resume", "OUT"}, Only: links},
			{Flag: "rpcrdma-replay serve --capture", Args: []string{"serve", "--provider", "tcp", "--listen", "127.0.0.1", "--tcp-port", "0", "--playback", "IN", "--capture", "OUT"}, Only: links},
			// bench reads nothing; its outputs can be each other.
			{Flag: "rpcrdma-replay bench --csv", Args: []string{"bench", "--csv", "DIR/x", "--svg", "DIR/sub/../x"}, Only: links[:1]},
			{Flag: "rpcrdma-replay bench --svg", Args: []string{"bench", "--csv", "IN", "--svg", "OUT"}, Only: links},
		},
	}
}

// TestPlanDataIsInput names a plan's data file as the output of a run.
func TestPlanDataIsInput(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "trace.plan")
	if _, problems, code := command(t, nil, "plan", "-o", name, samples+"/rocev2-nfs41-recall.pcap"); code != 0 {
		t.Fatal(problems)
	}
	data, err := os.ReadFile(name + ".data")
	if err != nil || len(data) == 0 {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", name, "builtin", "--yes", "--write", "--provider", "iwarp", "--report", name + ".data"},
		{"run", name, "builtin", "--yes", "--write", "--provider", "iwarp", "--capture", name + ".data"},
		{"plan", name, "--dot", name + ".data"},
	} {
		if _, problems, code := command(t, nil, args...); code != 2 {
			t.Errorf("%q: exit status %d: %s", args, code, problems)
		}
		if b, err := os.ReadFile(name + ".data"); err != nil || string(b) != string(data) {
			t.Errorf("%q: the data has changed: %d bytes of %d, %v", args, len(b), len(data), err)
		}
	}
}

// TestFlagRoles fails for a flag without a declaration of whether it names a file.
func TestFlagRoles(t *testing.T) { outputsProgram().CheckRoles(t) }

// TestOutputIsInput names the input file as each output.
func TestOutputIsInput(t *testing.T) { outputsProgram().CheckRefused(t) }

// TestOutputLost has a full disk behind standard output.
func TestOutputLost(t *testing.T) {
	outputsProgram().CheckLost(t, []string{"serve", "--provider", "tcp", "--tcp-port", "0"}, []string{"--list-interfaces"})
}

// TestNamesOfFiles names files that could be taken for lines of the output.
func TestNamesOfFiles(t *testing.T) {
	outputsProgram().CheckOneLine(t, "plan CUT -o DIR/x", "plan NAME -o x", "plan CUT -o NAME/x", "run NAME builtin", "run CUT builtin", "run CUT NAME", "run CUT builtin --report DIR", "run CUT builtin --resume DIR", "serve --dir NAME", "serve --export NAME",
		"serve --playback CUT --capture DIR", "bench --csv DIR", "bench --svg DIR", "man CUT")
}
