package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/testtools/natstest"
)

// TestCredentials: a job and an agent with JWTs and certificates of which each may do what
// docs/fleet/nats-server.conf allows it, and nothing else; then with those of others.
func TestCredentials(t *testing.T) {
	s := natstest.Documented(t, filepath.Join("..", ".."), natstest.JWTs)
	t.Setenv(roleVariable, "fleet")
	sample, out := filepath.Join("..", "..", "samples", "rocev2-nfs41-recall.pcap"), t.TempDir()
	submit := []string{"submit", sample, "--tap", "a", "-w", out}
	agent := []string{"agent", "-r", sample, "--speed", "max", "--tap", "a", "--linger", lingering}
	top := []string{"top", "-b", "1"}

	s.Setenv(t, "submitter")
	if status, _, stderr := command(t, submit...); status != 0 {
		t.Fatalf("submit: status %d: %s", status, stderr)
	}
	s.Setenv(t, "worker")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	worked := make(chan error, 1)
	a, err := queue.Address{}.Resolve(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, notes := conditions{Allow: []string{"file:///"}, Most: 1 << 30}, cli.NewProblems("worker", io.Discard)
		worked <- labour(ctx, queue.NewName(), a, c, decoder(c, notes), notes)
	}()
	s.Setenv(t, "reader")
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-again.C {
		status, stdout, stderr := command(t, "status", out)
		if status == 0 && strings.Contains(stdout, "1 of 1 units done") && stderr == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("status %d: %s%s", status, stdout, stderr)
		}
	}
	stop()
	if err := <-worked; err != nil {
		t.Error(err)
	}
	s.Setenv(t, "agent")
	if status, _, stderr := command(t, agent...); status != 0 {
		t.Errorf("agent: status %d: %s", status, stderr)
	}
	s.Setenv(t, "reader")
	if status, stdout, stderr := command(t, top...); status != 0 || !strings.Contains(stdout, "1 ended") {
		t.Errorf("top: status %d: %s%s", status, stdout, stderr)
	}

	// With what is not theirs, commands end with status 1, soon, and say why.
	late, foreign := s.Creds(t, "late", "reader", -time.Minute), s.ForeignCreds(t, "foreign", "reader")
	for _, x := range []struct{ name, creds, want string }{
		{"expired", late, "late.creds expired at"},
		{"of another account", foreign, "foreign.creds are not of an account of this server"},
		{"of another role", s.Creds(t, "nobody", natstest.Nobody, time.Hour), "has no permission for _INBOX_rpcrdma_"},
		{"no file", filepath.Join(out, "none"), "none: no such file"},
	} {
		t.Setenv("NATS_CREDS", x.creds)
		for _, args := range [][]string{submit, agent, top, {"worker", "-n", "2"}, {"worker"}} {
			start := time.Now()
			status, stdout, stderr := command(t, args...)
			if status != 1 || stdout != "" || !strings.Contains(stderr, x.want) || time.Since(start) > time.Minute {
				t.Errorf("%s, %s: status %d after %s: %s%s", x.name, args[0], status, time.Since(start), stdout, stderr)
			}
		}
		// The store knows what is done without NATS.
		if status, stdout, stderr := command(t, "status", out); status != 0 || !strings.Contains(stdout, "1 of 1 units done") || !strings.Contains(stderr, x.want) {
			t.Errorf("%s, status: status %d: %s%s", x.name, status, stdout, stderr)
		}
	}
	// A worker whose credentials expire does not stay behind without work.
	for valid := 2 * time.Second; ; valid *= 2 {
		t.Setenv("NATS_CREDS", s.Creds(t, "brief", "worker", valid))
		status, _, stderr := command(t, "worker")
		if status != 1 || !strings.Contains(stderr, "brief.creds expired at") {
			t.Fatalf("expired in work: status %d: %s", status, stderr)
		}
		if strings.Contains(stderr, queue.ErrRefused.Error()) {
			break
		}
		if valid > time.Minute { // they expired before the worker was let in
			t.Fatalf("connecting takes longer than %v: %s", valid, stderr)
		}
	}
}
