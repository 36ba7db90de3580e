package unit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// TestHostile decodes a tap of which some files are no captures, or damaged: they are problems, and the rest counts.
func TestHostile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nfs-7")
	packets := read(t, samples+"/rocev2-nfs41-recall.pcap")
	rotate(t, dir, packets, 5)
	early := slices.Clone(packets[:20])
	for i := range early {
		early[i].Time -= 10e9
	}
	rotate(t, filepath.Join(dir, "early"), early, 1)
	if err := errors.Join(os.Rename(filepath.Join(dir, "early", "cap-0.pcapng"), filepath.Join(dir, "cap-18.pcapng")), os.Remove(filepath.Join(dir, "early"))); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "cap-2.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string][]byte{
		"cap-10.pcapng":                   nil,
		"cap-11.pcapng":                   []byte(strings.Repeat("garbage", 1000)),
		"cap-12.pcapng":                   good[:len(good)-7],
		"cap-13.pcapng":                   good[:11],
		"cap-14.pcapng":                   {0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3}, // zstd, and no more
		"cap-15.pcapng":                   {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9},
		"cap-16 \x01\x1b[31m..%2e.pcapng": good[:40],
		"cap-17.pcapng":                   good,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), x, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	opt := layout.DefaultOptions()
	opt.PartFiles = 3
	u := plan(t, dir+"/*", opt)
	b := newBench(t)
	d, err := Run(t.Context(), u, b.in, b.out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Status != 3 || d.Damage < 6 || d.Counts.Files != 14 || d.Counts.Packets < uint64(len(packets)) {
		t.Errorf("%+v", d)
	}
	for _, p := range d.Problems {
		if strings.ContainsAny(p.String(), "\x01\x1b") {
			t.Errorf("%q", p.String())
		}
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "4 files without a capture") || strings.Contains(notes, "out of order") {
		t.Errorf("%q\n%+v", notes, d.Problems)
	}
	x, err := b.out.ReadSmall(t.Context(), d.State.Name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	f, err := state.Read(strings.NewReader(string(x)), 1<<30)
	if err != nil || len(f.Units()) != 1 || !f.Units()[0].Input().Damaged {
		t.Fatal("the state", err)
	}
	if _, err := latency.FromUnits(f); err != nil {
		t.Error(err)
	}
	if _, err := check.FromUnits(f); err != nil {
		t.Error(err)
	}
	// It is done: nothing is decoded again, even if the files are not there any more.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Run(t.Context(), u, b.in, b.out, Options{})
	if err != nil || again.State != d.State {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := Run(t.Context(), u, b.in, b.out, Options{Again: true}); !Permanent(err) || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("files that are gone: %v", err)
	}
}

// TestMistrust begins units over whose kept state, or result, is not what it should be.
func TestMistrust(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nfs-7")
	rotate(t, dir, read(t, samples+"/rocev2-nfs41-recall.pcap"), 4)
	opt := layout.DefaultOptions()
	opt.PartFiles = 1
	u := plan(t, dir+"/*", opt)
	key := []byte("0123456789abcdef")
	whole := newBench(t)
	if _, err := Run(t.Context(), u, whole.in, whole.out, Options{}); err != nil {
		t.Fatal(err)
	}
	want := whole.objects(t)
	// kept returns what an attempt leaves that stops in the third file.
	kept := func(b *bench, key []byte) []byte {
		t.Helper()
		ctx := newBrittle(t.Context(), 1<<40)
		_, err := Run(ctx, u, b.in, b.out, Options{Key: key, Progress: func(p Progress) {
			if p.Files == 3 {
				ctx.cancel()
			}
		}})
		if err == nil {
			t.Fatal("it was not interrupted")
		}
		x, err := b.out.ReadSmall(t.Context(), layout.ProgressName(u.ID), 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	cases := []struct {
		name    string
		left    []byte // key of the attempt before
		key     []byte
		change  func([]byte) []byte
		resumed bool
	}{
		{"as it was", nil, nil, nil, true},
		{"signed", key, key, nil, true},
		{"not signed", nil, key, nil, false},
		{"signed by another", []byte("fedcba9876543210"), key, nil, false},
		{"a bit", nil, nil, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, false},
		{"cut", nil, nil, func(b []byte) []byte { return b[:len(b)/2] }, false},
		{"empty", nil, nil, func([]byte) []byte { return nil }, false},
		{"garbage", nil, nil, func([]byte) []byte { return []byte("garbage") }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			x := kept(b, c.left)
			if c.change != nil {
				if _, err := b.out.WriteSmall(t.Context(), layout.ProgressName(u.ID), c.change(x)); err != nil {
					t.Fatal(err)
				}
			}
			resumed, told := 0, ""
			_, err := Run(t.Context(), u, b.in, b.out, Options{
				Key:      c.key,
				Progress: func(p Progress) { resumed = max(resumed, p.Resumed) },
				Log:      func(f string, a ...any) { told += fmt.Sprintf(f, a...) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if (resumed == 2) != c.resumed || (told == "") != c.resumed {
				t.Errorf("resumed after %d files: %q", resumed, told)
			}
			compare(t, b.objects(t), want)
		})
	}
	t.Run("done", func(t *testing.T) {
		b := newBench(t)
		for _, x := range []string{"", "{}", "[", `{"schema":"rpcrdma.fleet.done/2","unit":"` + u.ID + `"}`} {
			if _, err := b.out.WriteSmall(t.Context(), layout.DoneName(u.ID), []byte(x)); err != nil {
				t.Fatal(err)
			}
			if _, err := Run(t.Context(), u, b.in, b.out, Options{}); err != nil {
				t.Fatal(err)
			}
			compare(t, b.objects(t), want)
		}
	})
	t.Run("left by another version", func(t *testing.T) {
		b := newBench(t)
		for _, name := range []string{layout.PartName("2026-11-21", u.Tap, u.ID, 99), layout.PartName("2001-01-01", u.Tap, u.ID, 0)} {
			if _, err := b.out.WriteSmall(t.Context(), name, []byte("rows that would count twice")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Run(t.Context(), u, b.in, b.out, Options{}); err != nil {
			t.Fatal(err)
		}
		compare(t, b.objects(t), want)
	})
}

// TestClock decodes captures whose clock jumps from day to day.
func TestClock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nfs-7")
	packets := read(t, samples+"/rocev2-nfs3-longcall.pcap")
	for i := range packets {
		packets[i].Time += int64(i*7919%50) * day
	}
	rotate(t, dir, packets, 2)
	u := plan(t, dir+"/*", layout.DefaultOptions())
	b := newBench(t)
	r, err := newRun(t.Context(), u, b.in, b.out, &Options{Log: t.Logf, Progress: func(Progress) {}})
	if err != nil {
		t.Fatal(err)
	}
	r.rows.limit = 8
	d, err := r.run()
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Results) != 8 || d.Status != 3 || d.Counts.Rows >= d.Counts.Transactions || !strings.Contains(strings.Join(d.Notes, "\n"), "jump about") {
		t.Errorf("%+v", d)
	}
	x, err := IsDone(t.Context(), u, b.out)
	if err != nil || x == nil {
		t.Error(x, err)
	}
}

// TestLate decodes files whose numbers are not in the order of time.
func TestLate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nfs-7")
	packets := read(t, samples+"/rocev2-nfs3-longcall.pcap")
	for i := range packets[:len(packets)/2] {
		packets[i].Time += 10e9
	}
	rotate(t, dir, packets, 2)
	b := newBench(t)
	d, err := Run(t.Context(), plan(t, dir+"/*", layout.DefaultOptions()), b.in, b.out, Options{})
	if err != nil || !strings.Contains(strings.Join(d.Notes, "\n"), "1 file out of order") {
		t.Errorf("%v, %v", d.Notes, err)
	}
}
