package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
)

func init() { roles["mortal"] = mortal }

// mortal decodes a unit as the command does, and kills itself without warning. Its arguments are the captures, the store,
// and the number of files after which it dies: at once if that is even, otherwise a moment later, in whatever it is
// doing then, but before it has read another file.
func mortal() int {
	after, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return 9
	}
	ctx, opt := context.Background(), layout.DefaultOptions()
	opt.PartBytes = 1
	in := store.NewInputs(store.Options{})
	units, err := unit.Plan(ctx, in, []string{os.Args[1]}, "", opt)
	if err != nil || len(units) != 1 {
		return 8
	}
	out, err := store.Open(ctx, os.Args[2], store.Options{})
	if err != nil {
		return 7
	}
	if _, err := out.WriteSmall(ctx, layout.UnitName(units[0].ID), units[0].Encode()); err != nil {
		return 6
	}
	die := func() {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {}
	}
	if _, err := unit.Run(ctx, units[0], in, out, unit.Options{Progress: func(p unit.Progress) {
		switch {
		case p.Files > after, p.Files == after && after%2 == 0:
			die()
		case p.Files == after:
			time.AfterFunc(rand.N(10*time.Millisecond), die)
		}
	}}); err != nil {
		return 5
	}
	return 0
}

// decodeUnit runs this program in a role, as a process of its own.
func decodeUnit(t *testing.T, dir, role string, args ...string) error {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// tree reads all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if d.Name() != "resume" { // its bytes depend on the order in which maps are read
			out[strings.TrimPrefix(name, dir)] = string(b)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// TestKill kills a process that decodes a unit, each time after more files, and compares what has been written in the
// end with what the command does that was left alone.
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
	if err := decodeUnit(t, dir, "fleet", "unit", "--part", "1", "nfs-7/*", "-w", "whole"); err != nil {
		t.Fatal(err)
	}
	want := tree(t, filepath.Join(dir, "whole"))
	resumed := 0
	for after := 2; after < 8; after++ {
		err := decodeUnit(t, dir, "mortal", "nfs-7/*", "cut", strconv.Itoa(after))
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("it was not killed after %d files: %v", after, err)
		}
		if kept, err := filepath.Glob(filepath.Join(dir, "cut", "units", "*", "progress")); err != nil {
			t.Fatal(err)
		} else if len(kept) == 1 {
			resumed++
		}
	}
	if resumed == 0 {
		t.Error("nothing is kept to go on from")
	}
	if err := decodeUnit(t, dir, "fleet", "unit", "--part", "1", "nfs-7/*", "-w", "cut"); err != nil {
		t.Fatal(err)
	}
	got := tree(t, filepath.Join(dir, "cut"))
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
		{"unit DIR/a/1.pcap -w s3://b/../c", cli.ExitFailure, "not a folder"},
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
