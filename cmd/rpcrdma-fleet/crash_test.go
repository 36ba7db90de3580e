package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/work"
)

func init() {
	// A child process that panics in the units of one tap.
	roles["panicking"] = func() int {
		decode := func(c conditions, notes *cli.Problems) work.Decode {
			whole := decoder(c, notes)
			return func(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, progress func(queue.Progress)) error {
				if u.Tap == "tap-1" {
					panic("poison\x1b[31m")
				}
				return whole(ctx, u, in, out, progress)
			}
		}
		if obey(context.Background(), cli.Standard(), decode) != nil {
			return 1
		}
		return 0
	}
	roles["useless"] = func() int { return 7 }
}

// A unit at which workers crash is set aside, without waiting for signs of life that stay away; the others are done.
func TestRunPoison(t *testing.T) {
	dir := t.TempDir()
	captures(t, filepath.Join(dir, "caps"), 3, 2)
	pattern, out := filepath.Join(dir, "caps", "*", "*.pcap"), filepath.Join(dir, "out")
	t.Setenv(roleVariable, "panicking")
	status, _, stderr := command(t, "run", "-n", "2", pattern, "-w", out)
	if status != 3 || !strings.Contains(stderr, "2 of 3 units done; 0 missing, 0 failed, 1 set aside") || !strings.Contains(stderr, "3 workers crashed") || strings.Contains(stderr, "\x1b") {
		t.Errorf("status %d: %s", status, stderr)
	}
	list, err := filepath.Glob(filepath.Join(out, "units", "*", "aside.json"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if b, err := os.ReadFile(list[0]); err != nil || !strings.Contains(string(b), "panic: poison") {
		t.Errorf("the reason is not noted: %s, %v", b, err)
	}
	// The program was mended.
	t.Setenv(roleVariable, "fleet")
	if status, _, stderr := command(t, "run", pattern, "-w", out); status != 3 || !strings.Contains(stderr, "1 set aside") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if status, _, stderr := command(t, "run", "--retry", pattern, "-w", out); status != 0 {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// Workers that cannot even start end the program.
func TestRunUseless(t *testing.T) {
	dir := t.TempDir()
	captures(t, filepath.Join(dir, "caps"), 1, 1)
	t.Setenv(roleVariable, "useless")
	status, _, stderr := command(t, "run", "-n", "1", filepath.Join(dir, "caps", "*", "*"), "-w", filepath.Join(dir, "out"))
	if status != 1 || !strings.Contains(stderr, "as soon as they are started") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
