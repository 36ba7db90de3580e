package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

func outputsProgram() *clitest.Program {
	const n, in, out = clitest.Neither, clitest.Input, clitest.Output
	links := []string{"same name", "other spelling", "symbolic link", "hard link"}
	return &clitest.Program{
		Root:   newRootCommand(&cli.Streams{}),
		Sample: "../../samples/rocev2-nfs41-recall.pcap",
		Run: func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return run(args, &cli.Streams{In: stdin, Out: stdout, Err: stderr})
		},
		Roles: map[string]clitest.Role{
			"--read": in, "--keytab": in, "--config": in, "--interface": n, "--ports": n, "--capture-filter": n, "--filter": n, "--user": n, "--sandbox": n, "--clock": n, "--since": n, "--until": n,
			"--format": n, "--field": n, "--layout": n, "--color": n, "--sort": n, "--by": n, "--inline": n, "--view": n, "--decode-as": n,
			"rpcrdma-dump --extract-data": out, "rpcrdma-dump --cpuprofile": out,
			"rpcrdma-dump report --html": out, "rpcrdma-dump report --cpuprofile": out, "--save-state": out,
			"rpcrdma-dump check --cpuprofile": out,
			"rpcrdma-dump diff --html":        out, "rpcrdma-dump diff --cpuprofile": out,
			"--ftrace":                            in,
			"--mountstats":                        in,
			"rpcrdma-dump export trace --write":   out,
			"rpcrdma-dump export parquet --write": out, "rpcrdma-dump export parquet --partition": n, "rpcrdma-dump export parquet --host": n,
			"rpcrdma-dump annotate --write": out,
			"rpcrdma-dump --resume-state":   out, "rpcrdma-dump export parquet --resume-state": out, "--resume-key": in,
			"rpcrdma-dump split --write": out,
			"rpcrdma-dump scrub --write": out, "rpcrdma-dump scrub --key": in, "rpcrdma-dump scrub --keep": n, "rpcrdma-dump scrub --map": out,
			"--scrub": in, "rpcrdma-dump scrub --reverse-name": n,
			"rpcrdma-dump show --index":    out,
			"rpcrdma-dump capture --write": out, "--sysfs": in,
			"rpcrdma-dump --journal": n, "rpcrdma-dump extcap --fifo": out, "rpcrdma-dump extcap --extcap-interface": n, "rpcrdma-dump extcap --extcap-capture-filter": n,
			"rpcrdma-dump extcap --extcap-version": n, "rpcrdma-dump extcap --extcap-reload-option": n, "rpcrdma-dump extcap --device": n,
			"rpcrdma-dump extcap --delay": n, "rpcrdma-dump extcap --limit-memory": n, "rpcrdma-dump extcap --remote-host": n,
			"rpcrdma-dump extcap --remote-port": n, "rpcrdma-dump extcap --remote-user": n, "rpcrdma-dump extcap --remote-program": n,
			"rpcrdma-dump check --profile": n, "rpcrdma-dump check --rules": n, "rpcrdma-dump check --severity": n,
			"rpcrdma-dump capture --stop-filter": n, "rpcrdma-dump capture --stop-rule": n,
		},
		Cases: []clitest.Case{
			{Flag: "rpcrdma-dump export parquet --write", Args: []string{"export", "parquet", "IN", "-w", "OUT"}},
			{Flag: "rpcrdma-dump export parquet --write", Args: []string{"export", "parquet", "-r", "OTHER", "-r", "IN", "-w", "OUT"}},
			{Flag: "rpcrdma-dump export trace --write", Args: []string{"export", "trace", "IN", "-w", "OUT"}},
			{Flag: "rpcrdma-dump export trace --write", Args: []string{"export", "trace", "--follow", "IN", "-w", "OUT"}, Only: links},
			{Flag: "rpcrdma-dump export trace --write", Args: []string{"export", "trace", "--keytab", "IN", "-w", "OUT", "OTHER"}, Data: aKeytab, Only: links},
			{Flag: "rpcrdma-dump report --html", Args: []string{"report", "--html", "OUT", "IN"}},
			{Flag: "rpcrdma-dump report --html", Args: []string{"report", "--ftrace", "IN", "--html", "OUT", "OTHER"}, Only: links},
			{Flag: "rpcrdma-dump report --html", Args: []string{"report", "--mountstats", "IN", "--html", "OUT", "OTHER"}, Only: links},
			{Flag: "rpcrdma-dump report --save-state", Args: []string{"report", "--save-state", "OUT", "IN"}},
			{Flag: "rpcrdma-dump check --save-state", Args: []string{"check", "--save-state", "OUT", "IN"}},
			{Flag: "rpcrdma-dump connections --save-state", Args: []string{"connections", "--save-state", "OUT", "IN"}},
			{Flag: "rpcrdma-dump report --cpuprofile", Args: []string{"report", "--cpuprofile", "OUT", "IN"}},
			{Flag: "rpcrdma-dump report --cpuprofile", Args: []string{"report", "--cpuprofile", "DIR/x", "--html", "DIR/x", "IN"}, Only: links[:1]},
			{Flag: "rpcrdma-dump check --cpuprofile", Args: []string{"check", "--cpuprofile", "OUT", "IN"}},
			{Flag: "rpcrdma-dump diff --html", Args: []string{"diff", "--html", "OUT", "OTHER", "IN"}},
			{Flag: "rpcrdma-dump diff --cpuprofile", Args: []string{"diff", "--cpuprofile", "OUT", "OTHER", "IN"}},
			{Flag: "rpcrdma-dump --cpuprofile", Args: []string{"--cpuprofile", "OUT", "IN"}},
			{Flag: "rpcrdma-dump show --index", Args: []string{"show", "--index", "OUT", "1", "IN"}},
			{Flag: "rpcrdma-dump --resume-state", Args: []string{"--resume-state", "OUT", "IN"}, Only: links},
			{Flag: "rpcrdma-dump --resume-state", Args: []string{"--resume-state", "OUT", "--resume-key", "IN", "OTHER"}, Only: links},
			{Flag: "rpcrdma-dump export parquet --resume-state", Args: []string{"export", "parquet", "--resume-state", "OUT", "IN", "-w", "DIR/x"}, Only: links},
			{Flag: "rpcrdma-dump annotate --write", Args: []string{"annotate", "-w", "OUT", "IN"}},
			{Flag: "rpcrdma-dump scrub --write", Args: []string{"scrub", "-w", "OUT", "IN"}},
			{Flag: "rpcrdma-dump scrub --map", Args: []string{"scrub", "--map", "OUT", "-w", "DIR/x", "IN"}},
			{Flag: "rpcrdma-dump scrub --write", Args: []string{"scrub", "--key", "IN", "-w", "OUT", "OTHER"}, Data: aKeytab, Only: links},
			{Flag: "rpcrdma-dump report --html", Args: []string{"report", "--scrub", "IN", "--html", "OUT", "OTHER"}, Data: aKeytab, Only: links},
			{Flag: "rpcrdma-dump extcap --fifo", Args: []string{"extcap", "--capture", "--extcap-interface", "rpcrdma", "--device", "lo", "--fifo", "OUT"}},
			{Flag: "rpcrdma-dump split --write", Args: []string{"split", "-Y", "xid", "-w", "OUT", "IN"}},
			{Flag: "rpcrdma-dump split --write", Args: []string{"split", "--by", "connection", "-w", "DIR/part-{n}.pcap", "IN"}, In: "part-0001.pcap", Only: links[:1]},
			{Flag: "rpcrdma-dump split --write", Args: []string{"split", "--by", "connection", "-w", "DIR/part-{n}.pcap", "IN"}, Out: "part-0001.pcap", Only: links[2:]},
			{Flag: "rpcrdma-dump capture --write", Args: []string{"capture", "-r", "IN", "-w", "OUT"}},
			{Flag: "rpcrdma-dump capture --write", Args: []string{"capture", "-r", "IN", "-C", "1M", "-w", "DIR/ring.pcap"}, In: "ring-00001.pcap", Only: links[:1]},
			{Flag: "rpcrdma-dump capture --write", Args: []string{"capture", "-r", "IN", "-C", "1M", "-w", "DIR/ring.pcap"}, Out: "ring-00001.pcap", Only: links[2:]},
			// The directory of an extraction is an output by what is in it.
			{Flag: "rpcrdma-dump --extract-data", Args: []string{"--extract-data", "DIR/files", "IN"}, Out: "files/manifest.ndjson", Only: links[2:]},
			{Flag: "rpcrdma-dump --extract-data", Args: []string{"--extract-data", "DIR/.", "IN"}, Only: links[:1]},
		},
	}
}

// aKeytab is a file for --keytab.
func aKeytab(t *testing.T, _ string) []byte {
	list, err := filepath.Glob("../../samples/kerberos/*.keytab")
	if err != nil || len(list) == 0 {
		t.Fatal(err, list)
	}
	b, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFlagRoles fails for a flag of which nobody has said whether it names a file.
func TestFlagRoles(t *testing.T) { outputsProgram().CheckRoles(t) }

// TestOutputIsInput names each output as the file that is read.
func TestOutputIsInput(t *testing.T) { outputsProgram().CheckRefused(t) }

// TestOutputLost has a full disk behind standard output.
func TestOutputLost(t *testing.T) {
	outputsProgram().CheckLost(t, []string{"--list-fields"}, []string{"check", "--list-rules"}, []string{"capture", "--list-interfaces"})
}

// TestNamesOfFiles names files that could be taken for lines of the output.
func TestNamesOfFiles(t *testing.T) {
	outputsProgram().CheckOneLine(t, "NAME", "CUT", "report CUT", "report NAME", "check CUT", "packets CUT", "show 1 CUT", "annotate -w DIR CUT", "export trace -w NAME/x CUT", "export parquet -w DIR/x CUT",
		"report --html DIR CUT", "report --save-state NAME/x CUT", "report --ftrace NAME CUT", "split -Y xid -w DIR/x/y CUT", "scrub -w DIR/x/y CUT", "capture -r CUT -w NAME/x", "--keytab NAME CUT", "--extract-data DIR CUT", "man CUT")
}
