package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// TestWatchEnds: a signal ends --watch with the status of what was decoded, and the taps that were damaged are named.
func TestWatchEnds(t *testing.T) {
	for _, damaged := range [][]string{nil, {"tap-0"}} {
		dir := t.TempDir()
		slice(t, taps[0], filepath.Join(dir, "tap-0"), 2)
		var w submission
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		w.flags(f)
		if err := f.Parse([]string{"--watch", "100ms", "-w", filepath.Join(dir, "out")}); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		err := w.rounds(ctx, []string{filepath.Join(dir, "tap-*", "*")}, cli.NewProblems("", &said), func(x *submitted) error {
			x.damaged = damaged
			stop()
			return nil
		})
		if bad := damaged != nil; errors.Is(err, cli.ErrDamaged) != bad || !bad && err != nil || strings.Contains(said.String(), "tap-0") != bad {
			t.Errorf("%q: %v, %s", damaged, err, said.String())
		}
	}
}
