package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// TestServeSignals stops a server with each signal: it says what it did, and its capture is
// readable.
func TestServeSignals(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-replay")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "own.pcapng")
			p := clitest.Start(t, nil, bin, "serve", "--provider", "tcp", "--listen", "127.0.0.1", "--tcp-port", "0", "--capture", file)
			p.Until(t, "serving", func() bool { return strings.Contains(p.Stdout.String(), "Stop with Ctrl-C") })
			p.Signal(t, sig)
			if code, _ := p.Wait(t); code != 0 {
				t.Errorf("exit status %d: %s", code, p.Stderr.String())
			}
			if e := p.Stderr.String(); !strings.Contains(e, "stopped after") || !strings.Contains(e, "tcp: 0 calls") || strings.Contains(e, "interrupted") {
				t.Error(e)
			}
			if info, err := os.Stat(file); err != nil || info.Size() == 0 {
				t.Errorf("no capture: %v", err)
			}
		})
	}
}

// TestPlanSignals interrupts making a plan: neither the plan nor its data is there, and the old
// files are unchanged.
func TestPlanSignals(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-replay")
	// So many calls that the signal comes first, however long the test waits for a processor meanwhile.
	long := clitest.Long(t, samples+"/rocev2-nfs41-recall.pcap", 75)
	for i, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		for _, old := range []bool{false, true} {
			if testing.Short() && old != (i%2 == 0) {
				continue
			}
			dir := t.TempDir()
			name := filepath.Join(dir, "x.plan")
			if old {
				for _, n := range []string{name, name + ".data"} {
					if err := os.WriteFile(n, []byte("old"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			args := []string{"plan", "-o", name, "--dot", filepath.Join(dir, "x.dot"), long}
			p := clitest.Start(t, nil, bin, args...)
			p.Until(t, "temporary files", func() bool { return len(clitest.Temporary(t, dir)) > 1 })
			p.Signal(t, sig)
			if code, by := p.Wait(t); code != 1 && by != sig {
				t.Errorf("%v: exit status %d: %s", sig, code, p.Stderr.String())
			}
			for _, n := range []string{name, name + ".data"} {
				if b, err := os.ReadFile(n); old != (err == nil) || string(b) != map[bool]string{true: "old"}[old] {
					t.Errorf("%v: %s: %.20q, %v", sig, n, b, err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "x.dot")); err == nil {
				t.Errorf("%v: a graph is there", sig)
			}
			if left := clitest.Temporary(t, dir); len(left) > 0 && sig != syscall.SIGKILL {
				t.Errorf("%v: left: %q", sig, left)
			}
		}
	}
}

// TestPlanPipe: the first signal ends a program that waits for the writer of its input.
func TestPlanPipe(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-replay")
	sample, err := os.ReadFile(samples + "/rocev2-nfs41-recall.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"plan", "run"} {
		for _, sent := range []int{0, 1000} {
			dir := t.TempDir()
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			// For reading, too: it opens at once then, and is never at its end.
			w, err := os.OpenFile(fifo, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := w.Write(sample[:sent]); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", dir)
			args := []string{command, fifo}
			if command == "run" {
				args = append(args, "builtin")
			}
			left := func() []os.DirEntry {
				list, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				return list
			}
			p := clitest.Start(t, nil, bin, args...)
			p.Until(t, "temporary files", func() bool { return len(left()) > 0 })
			p.Signal(t, syscall.SIGINT)
			if code, by := p.Wait(t); by != syscall.SIGINT && code != 1 {
				t.Errorf("%s, %d bytes: exit status %d: %s", command, sent, code, p.Stderr.String())
			}
			if list := left(); len(list) > 0 {
				t.Errorf("%s, %d bytes: left: %q", command, sent, list)
			}
		}
	}
}

// TestRunReport: the old file stays if a run cannot begin; otherwise the new report replaces it.
func TestRunReport(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	sample := samples + "/rocev2-nfs41-recall.pcap"
	if err := os.WriteFile(report, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, code := command(t, nil, "run", sample, "192.0.2.1:1", "--yes", "--provider", "rdma", "--report", report); code == 0 {
		t.Error("there is a server")
	}
	if b, _ := os.ReadFile(report); string(b) != "old" {
		t.Errorf("%.50q", b)
	}
	_, problems, _ := command(t, nil, "run", sample, "builtin", "--yes", "--write", "--timing", "fast", "--provider", "iwarp", "-q",
		"--report", report, "--capture", filepath.Join(dir, "own.pcapng"))
	if b, _ := os.ReadFile(report); !strings.HasPrefix(string(b), "{") {
		t.Errorf("%.50q: %s", b, problems)
	}
	if left := clitest.Temporary(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
