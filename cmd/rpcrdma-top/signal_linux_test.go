package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// TestSignals ends tables of an input that goes on: they are printed.
func TestSignals(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-top")
	b, err := os.ReadFile("../../samples/rocev2-nfs41-recall.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			in := filepath.Join(t.TempDir(), "in.pcap")
			if err := os.WriteFile(in, b, 0o644); err != nil {
				t.Fatal(err)
			}
			// So slow that it does not end by itself.
			p := clitest.Start(t, nil, bin, "-r", in, "--batch", "0", "--speed", "0.001", "--listen", "127.0.0.1:0")
			p.Until(t, "metrics", func() bool { return strings.Contains(p.Stderr.String(), "metrics at") })
			p.Signal(t, sig)
			if code, _ := p.Wait(t); code != 0 {
				t.Errorf("exit status %d: %s", code, p.Stderr.String())
			}
			if !strings.Contains(p.Stdout.String(), "packets") {
				t.Errorf("no tables: %s", p.Stdout.String())
			}
		})
	}
}
