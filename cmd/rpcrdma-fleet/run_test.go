package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// command runs a command line in this process.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err})
	return status, out.String(), err.String()
}

// slice divides a sample into n captures, as rotation does.
func slice(t *testing.T, sample, dir string, n int) {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join("..", "..", "samples", sample)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var packets []capture.Packet
	var b capture.Batch
	for {
		err := r.Read(&b)
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			packets = append(packets, p)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("cap-%d.pcap", i)))
		if err != nil {
			t.Fatal(err)
		}
		w := capture.NewWriter(f, capture.WriterOptions{Format: capture.Pcap})
		for _, p := range packets[i*len(packets)/n : (i+1)*len(packets)/n] {
			if err := w.Write(&p); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// taps are samples, each as the captures of one tap.
var taps = []string{
	"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap", "iwarp-nfs3-loss.pcap.zst",
	"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs3-meta.pcap.zst", "iwarp-nfs40-basic.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst",
}

// captures writes the captures of the first n taps.
func captures(t *testing.T, dir string, n, files int) {
	t.Helper()
	for i, sample := range taps[:n] {
		slice(t, sample, filepath.Join(dir, fmt.Sprintf("tap-%d", i)), files)
	}
}

// results are the hashes of all objects whose bytes depend on the captures only, by name.
func results(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(strings.TrimPrefix(name, dir+"/"))
		if !strings.HasPrefix(name, "jobs/") && !strings.Contains(name, "/failed/") && d.Name() != "resume" { // in which the order is that of maps
			m[name] = fmt.Sprintf("%x", sha256.Sum256(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// same compares results.
func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: %s has %.12s, want %.12s", what, name, got[name], want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == "" {
			t.Errorf("%s: %s should not be there", what, name)
		}
	}
}

// decodeAlone decodes each tap by itself, without an engine: what all else is compared with.
func decodeAlone(t *testing.T, pattern func(tap int) string, n int, out string, more ...string) {
	t.Helper()
	for i := range n {
		if status, _, stderr := command(t, append([]string{"unit", pattern(i), "-w", out}, more...)...); status != 0 && status != 3 {
			t.Fatalf("unit: status %d, %s", status, stderr)
		}
	}
}

// doneFiles are what says that the four units of TestRun are done.
func doneFiles(t *testing.T, out string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(out, "units", "*", "done.json"))
	if err != nil || len(list) != 4 {
		t.Fatal(list, err)
	}
	return list
}

// Any number of workers has the results of one process.
func TestRun(t *testing.T) {
	t.Setenv(roleVariable, "fleet")
	dir := t.TempDir()
	captures(t, filepath.Join(dir, "caps"), 4, 5)
	pattern := filepath.Join(dir, "caps", "*", "*.pcap")
	alone := filepath.Join(dir, "alone")
	decodeAlone(t, func(tap int) string { return filepath.Join(dir, "caps", fmt.Sprintf("tap-*[%d]", tap), "*.pcap") }, 4, alone, "--part", "40K")
	want := results(t, alone)
	if len(want) < 4*4 {
		t.Fatalf("%d results", len(want))
	}
	out := filepath.Join(dir, "out")
	status, id, stderr := command(t, "run", "-n", "2", "--part", "40K", pattern, "-w", out)
	if status != 0 && status != 3 {
		t.Fatalf("status %d, %s", status, stderr)
	}
	same(t, "run -n 2", results(t, out), want)
	// A worker was ended when its result was there, and before it had tidied up.
	for _, name := range []string{"progress", "done.json.123.tmp"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(doneFiles(t, out)[0]), name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The store alone tells that it is done; so does the command when it is given again.
	again, id2, stderr2 := command(t, "run", "-n", "2", "--part", "40K", pattern, "-w", out)
	if again != status || id2 != id || !strings.Contains(stderr2, "4 of 4 units done") {
		t.Errorf("again: status %d, %q, %s", again, id2, stderr2)
	}
	same(t, "again", results(t, out), want)
	code, stdout, _ := command(t, "status", "--format", "json", out)
	var x shown
	if err := json.Unmarshal([]byte(stdout), &x); err != nil || code != 0 || !x.Complete || x.Jobs[0].Numbers.Units != 4 {
		t.Errorf("status %d, %v: %s", code, err, stdout)
	}
	// One result is lost.
	if err := os.WriteFile(doneFiles(t, out)[0], []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := command(t, "status", out); code != 3 || !strings.Contains(stdout, "3 of 4 units done") || !strings.Contains(stdout, "missing") {
		t.Errorf("status %d: %s", code, stdout)
	}
	if status, _, stderr := command(t, "run", "--part", "40K", pattern, "-w", out); status != again {
		t.Errorf("status %d: %s", status, stderr)
	}
	same(t, "after a loss", results(t, out), want)
}

// shown is the part of a status that tests look at.
type shown struct {
	Complete bool
	NATS     struct {
		Asked bool
		Error string
	}
	Jobs []struct {
		Numbers         numbers
		Running, Queued int
		Units           []struct{ Unit, Tap, State, Queue, Reason string }
	}
	Workers []struct{ Name, Unit string }
}

func TestUsage(t *testing.T) {
	for _, x := range []struct {
		args   string
		status int
		says   string
	}{
		{"run -w out", 2, "no captures"},
		{"run x.pcap", 2, "-w"},
		{"run -n -1 x.pcap -w out", 2, "-n -1"},
		{"run --watch 1ms x.pcap -w out", 2, "--watch"},
		{"run --limit-memory 1M x.pcap -w out", 2, "at least 40M"},
		{"run /no/such/file.pcap -w " + t.TempDir(), 1, "no such"},
		{"submit --nats http://x x.pcap -w out", 1, "nats://"},
		{"submit --replicas 9 --nats x x.pcap -w out", 2, "--replicas"},
		{"packets --xid 1 -w x.pcapng out", 2, "--time"},
		{"worker -n 2 --listen :1 --nats x", 2, "--listen"},
		{"worker extra", 2, ""},
		{"worker", 2, "no NATS server"},
		{"worker --nats 127.0.0.1:1", 1, "127.0.0.1:1"},
		{"worker --nats x --allow /etc", 2, "--allow"},
		{"worker --nats 127.0.0.1:1 --tls-cert x", 1, "key"},
		{"worker --supervised", 1, "orders"},
		{"status", 2, "store"},
		{"status --format xml out", 2, "table or json"},
		{"status " + t.TempDir(), 1, "no jobs"},
		{"status --job ../x " + t.TempDir(), 2, "--job"},
	} {
		t.Setenv("HOME", t.TempDir())
		t.Setenv("NATS_URL", "")
		status, _, stderr := command(t, strings.Fields(x.args)...)
		if status != x.status || !strings.Contains(stderr, x.says) {
			t.Errorf("%s: status %d, want %d: %s", x.args, status, x.status, stderr)
		}
	}
}

// NATS is away: the store tells what is done, and the status says that the rest is not known.
func TestStatusWithoutNATS(t *testing.T) {
	t.Setenv(roleVariable, "fleet")
	dir := t.TempDir()
	captures(t, filepath.Join(dir, "caps"), 1, 2)
	out := filepath.Join(dir, "out")
	if status, _, stderr := command(t, "run", filepath.Join(dir, "caps")+"/", "--tap", "x", "-w", out); status != 0 {
		t.Fatal(stderr)
	}
	code, stdout, stderr := command(t, "status", "--nats", "127.0.0.1:1", "--format", "json", out)
	var x shown
	if err := json.Unmarshal([]byte(stdout), &x); err != nil || code != 0 || !x.Complete || x.NATS.Error == "" || !strings.Contains(stderr, "NATS") {
		t.Errorf("status %d, %v, %s, %s", code, err, stdout, stderr)
	}
}
