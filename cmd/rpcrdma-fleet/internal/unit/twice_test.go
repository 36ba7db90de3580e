package unit

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// twice is a unit of six files, each of which ends a part, and what becomes of it.
func twice(t *testing.T) (u *layout.Unit, want map[string]string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "nfs-7")
	rotate(t, dir, read(t, filepath.Join(samples, "rocev2-nfs41-recall.pcap")), 6)
	opt := layout.DefaultOptions()
	opt.PartFiles = 1
	u = plan(t, dir+"/*.pcapng", opt)
	b := newBench(t)
	if _, err := Run(t.Context(), u, b.in, b.out, Options{}); err != nil {
		t.Fatal(err)
	}
	return u, b.objects(t)
}

// TestAtOnce decodes a unit several times at once, as happens when it is delivered again while it is decoded: each
// attempt writes the same, and none fails since another tidies up.
func TestAtOnce(t *testing.T) {
	u, want := twice(t)
	b := newBench(t)
	var attempts sync.WaitGroup
	for range 4 {
		attempts.Go(func() {
			for range 3 {
				if _, err := Run(t.Context(), u, b.in, b.out, Options{Again: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	attempts.Wait()
	compare(t, b.objects(t), want)
}

// TestOvertaken: a unit is done by another attempt while one is under way. That one ends then, and leaves nothing.
func TestOvertaken(t *testing.T) {
	u, want := twice(t)
	b := newBench(t)
	const halt = 2
	files := 0
	done, err := Run(t.Context(), u, b.in, b.out, Options{Progress: func(p Progress) {
		if files = p.Files; files == halt {
			if _, err := Run(t.Context(), u, b.in, b.out, Options{}); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if done.Unit != u.ID || done.Counts.Files != len(u.Files) || files != halt {
		t.Errorf("%d files were read; %+v", files, done)
	}
	compare(t, b.objects(t), want)
}
