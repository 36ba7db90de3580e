package unit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

const samples = "../../../../samples"

// read returns the packets of a capture.
func read(t testing.TB, name string) []capture.Packet {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []capture.Packet
	var b capture.Batch
	for {
		if err := r.Read(&b); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			out = append(out, p)
		}
	}
}

// rotate writes packets to n files of a folder.
func rotate(t testing.TB, dir string, packets []capture.Packet, n int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("cap-%d.pcapng", i)))
		if err != nil {
			t.Fatal(err)
		}
		w := capture.NewWriter(f, capture.WriterOptions{Link: packets[0].Link})
		for _, p := range packets[len(packets)*i/n : len(packets)*(i+1)/n] {
			if err := w.Write(&p); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Flush(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// plan makes the only unit of a pattern.
func plan(t testing.TB, pattern string, opt layout.Options) *layout.Unit {
	t.Helper()
	in := store.NewInputs(store.Options{})
	defer in.Close()
	list, err := Plan(t.Context(), in, []string{pattern}, "", opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 {
		t.Fatalf("%d units", len(list))
	}
	return list[0]
}

// bench is a store for results in a folder.
type bench struct {
	dir string
	out *store.Store
	in  *store.Inputs
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), in: store.NewInputs(store.Options{})}
	var err error
	if b.out, err = store.Open(t.Context(), b.dir, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.out.Close()
		b.in.Close()
	})
	return b
}

// objects reads all objects of the store but the kept states, whose bytes depend on the order in which maps are read.
func (b *bench) objects(t testing.TB) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for o, err := range b.out.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.out.ReadSmall(t.Context(), o.Name, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if path.Base(o.Name) != "resume" {
			out[o.Name] = string(x)
		}
	}
	return out
}

// compare compares the objects of stores.
func compare(t *testing.T, got, want map[string]string) {
	t.Helper()
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		t.Errorf("objects\n %s\nand not\n %s", strings.Join(a, "\n "), strings.Join(b, "\n "))
	}
	for name, x := range want {
		if got[name] != x {
			t.Errorf("%s differs: %d and %d bytes", name, len(got[name]), len(x))
		}
	}
}

// brittle is a context that ends when it has been looked at so often.
type brittle struct {
	context.Context
	left   atomic.Int64
	cancel context.CancelFunc
}

func newBrittle(ctx context.Context, looks int) *brittle {
	ctx, cancel := context.WithCancel(ctx)
	b := &brittle{Context: ctx, cancel: cancel}
	b.left.Store(int64(looks))
	return b
}

func (b *brittle) Err() error {
	if b.left.Add(-1) <= 0 {
		b.cancel()
	}
	return b.Context.Err()
}

// TestResume interrupts units at any place, as often as it takes, and compares all objects with those of a run that was
// not interrupted.
func TestResume(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(samples, "*.pcap*"))
	if err != nil || len(names) < 10 {
		t.Fatal("no samples", err)
	}
	rng := rand.New(rand.NewPCG(1, 17))
	if testing.Short() {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:4]
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(2, uint64(len(name))))
			dir := filepath.Join(t.TempDir(), "nfs-7")
			rotate(t, dir, read(t, name), 5+rng.IntN(6))
			opt := layout.DefaultOptions()
			opt.PartFiles = 1 + rng.IntN(2)
			u := plan(t, dir+"/*.pcapng", opt)
			whole := newBench(t)
			const many = 1 << 40
			all := newBrittle(t.Context(), many)
			if _, err := Run(all, u, whole.in, whole.out, Options{}); err != nil {
				t.Fatal(err)
			}
			looks := many - int(all.left.Load())
			want := whole.objects(t)
			for range 2 {
				cut := newBench(t)
				attempts, resumed := 0, 0
				for {
					attempts++
					ctx := newBrittle(t.Context(), rng.IntN(looks*attempts/(2*len(u.Parts()))+1))
					_, err := Run(ctx, u, cut.in, cut.out, Options{
						Progress: func(p Progress) { resumed = max(resumed, p.Resumed) },
						Log:      func(format string, args ...any) { t.Errorf(format, args...) },
					})
					ctx.cancel()
					if err == nil {
						break
					}
					if !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
				}
				if attempts < 3 || resumed == 0 {
					t.Errorf("%d attempts, and %d files read by others: nothing was tested", attempts, resumed)
				}
				compare(t, cut.objects(t), want)
			}
		})
	}
}
