package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// decodeUnit runs the command in a process of its own, and kills it when kill returns true.
func decodeUnit(t *testing.T, dir string, kill func() bool, args ...string) error {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"unit"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), roleVariable+"=fleet")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out.String())
			}
			return err
		case <-tick.C:
			if kill != nil && kill() {
				cmd.Process.Kill() //nolint:errcheck // it may have ended
			}
		}
	}
}

// tree is all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		out[strings.TrimPrefix(name, dir)] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// TestKill kills the command without warning, as often as it gets further, and compares what it has written in the end
// with what one does that was left alone.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "nfs-7"), 0o777); err != nil {
		t.Fatal(err)
	}
	r, err := capture.Open([]string{"../../samples/rocev2-nfs41-restart.pcap.zst"}, capture.Options{BatchSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	for n := 0; r.Read(&b) == nil; n++ {
		var x bytes.Buffer
		w := capture.NewWriter(&x, capture.WriterOptions{})
		for i := range b.Packets {
			if err := w.Write(&b.Packets[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Flush(), os.WriteFile(filepath.Join(dir, "nfs-7", fmt.Sprintf("cap-%d.pcapng", n)), x.Bytes(), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := decodeUnit(t, dir, nil, "--part", "1", "nfs-7/*", "-w", "whole"); err != nil {
		t.Fatal(err)
	}
	want := tree(t, filepath.Join(dir, "whole"))
	killed := 0
	for {
		// It is killed some time after it has kept a state that it had not found.
		var was, kept time.Time
		seen := func() (at time.Time) {
			names, _ := filepath.Glob(filepath.Join(dir, "cut", "units", "*", "progress"))
			if len(names) == 1 {
				if st, err := os.Stat(names[0]); err == nil {
					at = st.ModTime()
				}
			}
			return at
		}
		was = seen()
		err := decodeUnit(t, dir, func() bool {
			if at := seen(); kept.IsZero() && !at.Equal(was) {
				kept = time.Now()
			}
			return killed < 4 && !kept.IsZero() && time.Since(kept) > time.Duration(killed)*3*time.Millisecond
		}, "--part", "1", "nfs-7/*", "-w", "cut")
		if err == nil {
			break
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Exited() {
			t.Fatal(err)
		}
		if killed++; killed > 4 {
			t.Fatal("it was killed too often")
		}
	}
	if killed == 0 {
		t.Error("it was too fast to be killed")
	}
	got := tree(t, filepath.Join(dir, "cut"))
	maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasSuffix(name, ".tmp") }) // of a file that was not whole
	if x, y := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(x, y) {
		t.Errorf("%q, and not %q", x, y)
	}
	for name, x := range want {
		if got[name] != x {
			t.Errorf("%s differs", name)
		}
	}
}

// TestUnitUsage gives the command what it cannot do.
func TestUnitUsage(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/1.pcap", "b/1.pcap"} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte("x"), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		args string
		code int
		text string
	}{
		{"unit", cli.ExitUsage, "no input"},
		{"unit a.pcap", cli.ExitUsage, "-w"},
		{"unit DIR/none.pcap -w DIR/out", cli.ExitFailure, "no such object"},
		{"unit DIR/a -w DIR/out", cli.ExitFailure, "a slash at its end"},
		{"unit DIR/*/*.pcap -w DIR/out", cli.ExitUsage, "of 2 taps"},
		{"unit ftp://x/y -w DIR/out", cli.ExitFailure, "not ftp://"},
		{"unit DIR/a/1.pcap -w s3://b/../c", cli.ExitFailure, "no folder"},
		{"unit --by nothing DIR/a/1.pcap -w DIR/out", cli.ExitUsage, "--by"},
		{"unit --profile x DIR/a/1.pcap -w DIR/out", cli.ExitUsage, "--profile"},
		{"unit --limit-memory 1M DIR/a/1.pcap -w DIR/out", cli.ExitUsage, "40M"},
		{"unit -Y op=== DIR/a/1.pcap -w DIR/out", cli.ExitUsage, "op==="},
		{"unit --tap DIR --inline x DIR/a/1.pcap -w DIR/out", cli.ExitUsage, "--inline"},
		{"unit --resume-key DIR/a/1.pcap DIR/a/1.pcap -w DIR/out", cli.ExitUsage, "at least 16"},
		{"unit DIR/a/1.pcap -w DIR/out", cli.ExitDamaged, "not a packet capture"},
		{"unit DIR/a/1.pcap -w DIR/out", cli.ExitDamaged, "not a packet capture"}, // it is done
	}
	for _, c := range cases {
		var out, err bytes.Buffer
		code := run(strings.Fields(strings.ReplaceAll(c.args, "DIR", dir)), &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err})
		if code != c.code || !strings.Contains(err.String(), c.text) {
			t.Errorf("%s: exit code %d, %q", c.args, code, err.String())
		}
	}
}
