package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/testtools/natstest"
	"github.com/rpcrdma/toolkit/decode"
)

// transactions counts those of a capture that ended.
func transactions(t *testing.T, name string) (n uint64) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, err := range decode.Transactions(r, decode.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// startNATS starts a NATS server that the flags' environment names.
func startNATS(t *testing.T) {
	t.Helper()
	e, err := queue.Embed(t.TempDir(), natstest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Setenv("NATS_URL", e.Address.Servers)
	t.Setenv("NATS_USER", e.Address.User)
	t.Setenv("NATS_PASSWORD", e.Address.Pass)
	t.Setenv(roleVariable, "fleet")
}

// lingering is how long an agent of a test has for sending what it has seen.
const lingering = "3m"

// TestAgent observes captures as two taps, and looks at them: nothing is lost on the
// way, neither in summaries nor in files.
func TestAgent(t *testing.T) {
	startNATS(t)
	out := t.TempDir()
	// Who looks before anything was sent is told so, and does not wait.
	if status, stdout, stderr := command(t, "top", "--batch", "1"); status != 0 || !strings.Contains(stdout, "0 taps") || !strings.Contains(stderr, "no agent has sent anything yet") {
		t.Errorf("status %d, %s%s", status, stdout, stderr)
	}
	want := map[string]uint64{}
	for tap, sample := range map[string]string{"rack 1": "rocev2-nfs3-basic.pcap.zst", "rack2": "iwarp-nfs41-recall.pcap"} {
		file := filepath.Join("..", "..", "samples", sample)
		want[tap] = transactions(t, file)
		status, stdout, stderr := command(t, "agent", "-r", file, "--speed", "max", "--tap", tap, "-d", "100ms", "-w", out, "--linger", lingering)
		if status != 0 || stdout != "" {
			t.Fatalf("status %d, %s%s", status, stdout, stderr)
		}
	}
	// Summaries, from the stream itself.
	got := map[string]uint64{}
	nc, err := queue.Dial(resolve(t), queue.Reader, "test", natstest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	messages := make(chan live.Message)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- live.Watch(ctx, nc, 24*time.Hour, messages, natstest.Log(t)) }()
	for last := false; !last; {
		var m live.Message
		select {
		case m = <-messages:
		case err := <-ended:
			t.Fatalf("after %v: %v", got, err)
		}
		s, err := live.Decode(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		got[s.Tap] += s.Transactions
		last = m.Last
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for tap, n := range want {
		if got[tap] != n {
			t.Errorf("%s: %d transactions in summaries, want %d", tap, got[tap], n)
		}
	}
	// Files.
	var rows, all uint64
	err = filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".parquet") {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		p, err := parquet.OpenFile(f, st.Size())
		if err != nil {
			return err
		}
		rows += uint64(p.NumRows())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range want {
		all += n
	}
	if rows != all {
		t.Errorf("%d rows in files, want %d", rows, all)
	}
	// What a person sees.
	status, stdout, stderr := command(t, "top", "--batch", "1", "--tap", "rack 1")
	if status != 0 || !strings.Contains(stdout, "2 ended") || !strings.Contains(stdout, "rack 1") || strings.Contains(stdout, "INCOMPLETE") {
		t.Errorf("status %d, %s%s", status, stdout, stderr)
	}
	status, stdout, stderr = command(t, "top", "--batch", "1", "-T", "json", "--sort", "tap")
	var x struct {
		Totals live.Totals `json:"totals"`
		Taps   []struct {
			Missing uint64        `json:"summaries_missing"`
			Last    *live.Summary `json:"latest"`
		} `json:"taps"`
	}
	if err := json.Unmarshal([]byte(stdout), &x); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s%s", status, err, stdout, stderr)
	}
	if x.Totals.Ended != 2 || len(x.Taps) != 2 || x.Taps[0].Last.Tap != "rack 1" || x.Taps[0].Missing != 0 {
		t.Errorf("%s", stdout)
	}
}

func resolve(t *testing.T) queue.Address {
	t.Helper()
	a, err := queue.Address{}.Resolve(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAgentMistakes: errors name the flag, and the status is that of usage.
func TestAgentMistakes(t *testing.T) {
	startNATS(t)
	bad := filepath.Join(t.TempDir(), "bad.pcap")
	if err := os.WriteFile(bad, []byte("no capture"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"agent", 2, "no input"},
		{"agent -i lo -r x", 2, "exclude each other"},
		{"agent -r x -p", 2, "go with -i"},
		{"agent -r x -d 1us", 2, "100ms to 1h"},
		{"agent -r x --speed fast", 2, "neither a factor nor max"},
		{"agent -r x --speed 1x", 2, "neither a factor nor max"},
		{"agent -r x --folder y", 2, "goes with -w"},
		{"agent -r - --tap t", 2, "standard input"},
		{"agent -r x --spool 1", 2, "--spool"},
		{"agent -r /nowhere/x.pcap --tap t", 1, "/nowhere/x.pcap"},
		{"agent -r " + bad + " --tap t", 1, "bad.pcap"},
		{"top --sort size", 2, "it is one of p99"},
		{"top --format xml", 2, "text or json"},
	} {
		status, stdout, stderr := command(t, strings.Fields(c.args)...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, want %d; %s%s does not say %q", c.args, status, c.status, stdout, stderr, c.want)
		}
	}
}

// TestAgentPermissions: what docs/fleet/nats-server.conf allows an agent and a reader
// is enough for them.
func TestAgentPermissions(t *testing.T) {
	server := natstest.Documented(t, filepath.Join("..", ".."), natstest.Passwords)
	server.Setenv(t, "agent")
	t.Setenv(roleVariable, "fleet")
	capture := filepath.Join("..", "..", "samples", "rocev2-nfs41-recall.pcap")
	for range 3 {
		if status, _, stderr := command(t, "agent", "-r", capture, "--speed", "max", "--tap", "a", "--linger", lingering); status != 0 {
			t.Fatalf("status %d: %s", status, stderr)
		}
	}
	server.Setenv(t, "reader")
	if status, stdout, stderr := command(t, "top", "-b", "1"); status != 0 || !strings.Contains(stdout, "1 ended") || strings.Contains(stderr, "ermission") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	// A reader speaks for no tap, and says so soon.
	if status, _, stderr := command(t, "agent", "-r", capture, "--speed", "max", "--tap", "a", "--linger", "1s"); status != 1 || !strings.Contains(stderr, "no permission for _INBOX_rpcrdma_agent") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
