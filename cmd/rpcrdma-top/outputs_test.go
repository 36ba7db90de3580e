package main

import (
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

func outputsProgram() *clitest.Program {
	const n, in, out = clitest.Neither, clitest.Input, clitest.Output
	return &clitest.Program{
		Root:   newRootCommand(&cli.Streams{}),
		Sample: "../../samples/rocev2-nfs41-recall.pcap",
		Run: func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return run(args, &cli.Streams{In: stdin, Out: stdout, Err: stderr})
		},
		Roles: map[string]clitest.Role{
			"--read": in, "--keytab": in, "--interface": n, "--ports": n, "--sysfs": in, "--filter": n, "--listen": n, "--alarm": n, "--since": n, "--until": n, "--columns": n, "--sort": n, "--theme": n, "--config": in, "--color": n, "--user": n, "--sandbox": n, "rpcrdma-top --cpuprofile": out,
		},
		Cases: []clitest.Case{
			{Flag: "rpcrdma-top --cpuprofile", Args: []string{"--batch", "0", "--cpuprofile", "OUT", "-r", "IN"}},
			{Flag: "rpcrdma-top --cpuprofile", Args: []string{"--batch", "0", "--cpuprofile", "OUT", "OTHER", "IN"}},
		},
	}
}

// TestFlagRoles fails for a flag of which nobody has said whether it names a file.
func TestFlagRoles(t *testing.T) { outputsProgram().CheckRoles(t) }

// TestOutputIsInput names each output as the file that is read.
func TestOutputIsInput(t *testing.T) { outputsProgram().CheckRefused(t) }

// TestOutputLost has a full disk behind standard output.
func TestOutputLost(t *testing.T) {
	outputsProgram().CheckLost(t, []string{"--list-interfaces"})
}

// TestNamesOfFiles names files that could be taken for lines of the output.
func TestNamesOfFiles(t *testing.T) {
	outputsProgram().CheckOneLine(t, "--batch 0 -r CUT", "--batch 0 -r NAME", "--config NAME --batch 0 -r CUT", "--keytab NAME --batch 0 -r CUT", "man CUT")
}
