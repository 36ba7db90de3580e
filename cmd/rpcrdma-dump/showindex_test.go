package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// indexNote are the notes about the index itself.
var indexNote = regexp.MustCompile(`(?m)^rpcrdma-dump: note: \S+\.idx .*\n`)

// shown is what show gives.
type shown struct {
	out, err, notes string
	code            int
}

func showWith(t testing.TB, args ...string) shown {
	t.Helper()
	var stdout, stderr bytes.Buffer
	x := shown{code: run(append([]string{"show"}, args...), &cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})}
	x.out = stdout.String()
	x.err = indexNote.ReplaceAllString(stderr.String(), "")
	x.notes = strings.Join(indexNote.FindAllString(stderr.String(), -1), "")
	return x
}

// same compares what is shown with and without an index.
func (x shown) same(t *testing.T, want shown, what string) {
	t.Helper()
	if x.out != want.out || x.err != want.err || x.code != want.code {
		t.Errorf("%s: exit status %d, want %d\n%s\nwant\n%s\n%s\nwant\n%s", what, x.code, want.code, x.err, want.err, x.out, want.out)
	}
}

// uncompressed is a sample without compression.
func uncompressed(t testing.TB, dir, name string) string {
	t.Helper()
	p, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".zst"))
	if strings.HasSuffix(name, ".zst") {
		z, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		if p, err = z.DecodeAll(p, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(out, p, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// xidsOf are some XIDs of a capture, those at its end and those that occur several times among them.
func xidsOf(t testing.TB, file string, rng *rand.Rand) (list []string) {
	t.Helper()
	var stdout bytes.Buffer
	run([]string{"-T", "fields", "-e", "xid", file}, &cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: io.Discard})
	all := strings.Fields(stdout.String())
	count := make(map[string]int)
	for _, x := range all {
		count[x]++
	}
	most := ""
	for _, x := range all {
		if count[x] > max(1, count[most]) {
			most = x
		}
	}
	if len(all) > 0 {
		list = append(list, all[0], all[len(all)-1], all[rng.IntN(len(all))])
	}
	if most != "" {
		list = append(list, most)
	}
	return append(list, "0x01020304")
}

// small makes segments as small as batches, for a test.
func small(t testing.TB, step int64) {
	indexStep, indexWorth = step, 1
	t.Cleanup(func() { indexStep, indexWorth = 0, 0 })
	t.Setenv("XDG_STATE_HOME", t.TempDir())
}

// TestIndexSame shows transactions of all samples with an index: the same as without.
func TestIndexSame(t *testing.T) {
	small(t, 1)
	rng := rand.New(rand.NewPCG(16, 6))
	for i, name := range sampleFiles(t) {
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir := t.TempDir()
			file, idx := uncompressed(t, dir, name), filepath.Join(dir, "x.idx")
			xids := xidsOf(t, file, rng)
			if testing.Short() {
				xids = xids[len(xids)*3/4:]
			}
			args := []string{"--limit-memory", "100M"} // with which batches are smaller
			if rng.IntN(2) > 0 {
				args = append(args, "-T", "json")
			}
			for i, x := range xids {
				with := append(slices.Clone(args), x, file)
				want := showWith(t, with...)
				got := showWith(t, append([]string{"--index", idx}, with...)...)
				got.same(t, want, x)
				if got.notes != "" {
					t.Errorf("%s: %s", x, got.notes)
				}
				if _, err := os.Stat(idx); err != nil && i == 0 {
					t.Fatal(err)
				}
			}
		})
	}
}

// There is no index of calls that Kerberos protects, since a part of the capture does not have all contexts.
func TestIndexKerberos(t *testing.T) {
	small(t, 1)
	dir := t.TempDir()
	file, idx := uncompressed(t, dir, samples+"/kerberos/rocev2-nfs41-krb5p.pcap.zst"), filepath.Join(dir, "x.idx")
	xid := xidsOf(t, file, rand.New(rand.NewPCG(16, 11)))[1]
	for range 2 {
		got := showWith(t, "--index", idx, xid, file)
		got.same(t, showWith(t, xid, file), xid)
		if _, err := os.Stat(idx); err == nil || !strings.Contains(got.notes, "was not made: some calls are protected by Kerberos") {
			t.Errorf("notes %q, %v", got.notes, err)
		}
	}
}

// TestIndexStale changes the capture, the index or the key: that is noted, and what is shown is right.
func TestIndexStale(t *testing.T) {
	small(t, 1)
	dir := t.TempDir()
	file, idx := uncompressed(t, dir, samples+"/rocev2-nfs41-midstream.pcap.zst"), filepath.Join(dir, "x.idx")
	xid := xidsOf(t, file, rand.New(rand.NewPCG(16, 7)))[1]
	args := []string{"--limit-memory", "100M", xid, file}
	indexed := append([]string{"--index", idx}, args...)
	if x := showWith(t, indexed...); x.code != 0 || x.notes != "" {
		t.Fatal(x)
	}
	good, err := os.ReadFile(idx)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(16, 8))
	write := func(name string, p []byte) {
		t.Helper()
		if err := os.WriteFile(name, p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(p []byte, at int) []byte {
		p = bytes.Clone(p)
		p[at] ^= 1 << rng.IntN(8)
		return p
	}
	sameTime := func() {
		if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(){
		"cut":             func() { write(idx, good[:len(good)-1-rng.IntN(100)]) },
		"cut in half":     func() { write(idx, good[:len(good)/2]) },
		"longer":          func() { write(idx, append(bytes.Clone(good), 0)) },
		"directory":       func() { write(idx, flip(good, len(good)-200)) },
		"signature":       func() { write(idx, flip(good, len(good)-1)) },
		"length":          func() { write(idx, flip(good, len(good)-40)) },
		"version":         func() { write(idx, flip(good, 16)) },
		"another key":     func() { t.Setenv("XDG_STATE_HOME", t.TempDir()) },
		"capture written": func() { _ = os.Chtimes(file, time.Time{}, info.ModTime().Add(time.Nanosecond*1000)) },
		"capture longer":  func() { write(file, append(bytes.Clone(data), data[len(data)-500:]...)); sameTime() },
		"capture shorter": func() { write(file, data[:len(data)-1000]); sameTime() },
		"another capture": func() {
			write(file, data)
			other := bytes.Clone(data)
			copy(other[24:], data[24+100_000:])
			write(file, other)
			sameTime()
		},
		"start changed": func() { write(file, flip(data, 60)); sameTime() },
		"end changed":   func() { write(file, flip(data, len(data)-30)); sameTime() },
	} {
		t.Run(name, func(t *testing.T) {
			write(file, data)
			sameTime()
			write(idx, good)
			change()
			want := showWith(t, args...)
			got := showWith(t, indexed...)
			got.same(t, want, xid)
			if !strings.Contains(got.notes, "is not used") || !strings.Contains(got.notes, "is made again") {
				t.Errorf("notes %q", got.notes)
			}
			again := showWith(t, indexed...)
			again.same(t, want, xid)
			if again.notes != "" {
				t.Errorf("after it was made again: %s", again.notes)
			}
		})
	}
}

// TestIndexDamaged changes bytes of an index, of which some are not needed for an answer: it is right in any case.
func TestIndexDamaged(t *testing.T) {
	small(t, 1)
	dir := t.TempDir()
	file, idx := uncompressed(t, dir, samples+"/rocev2-nfs41-recall.pcap"), filepath.Join(dir, "x.idx")
	rng := rand.New(rand.NewPCG(16, 9))
	xid := xidsOf(t, file, rng)[2]
	args := []string{"--limit-memory", "100M", xid, file}
	want := showWith(t, args...)
	indexed := append([]string{"--index", idx}, args...)
	showWith(t, indexed...).same(t, want, "made")
	good, err := os.ReadFile(idx)
	if err != nil {
		t.Fatal(err)
	}
	n := 40
	if testing.Short() {
		n = 10
	}
	for range n {
		at := 20 + rng.IntN(len(good)-20)
		bad := bytes.Clone(good)
		bad[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(idx, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		showWith(t, indexed...).same(t, want, fmt.Sprint("byte ", at))
	}
}

// TestIndexChanged changes a byte of the capture that no sample covers, in a segment that is decoded, with the same size and time.
func TestIndexChanged(t *testing.T) {
	small(t, 1)
	dir := t.TempDir()
	file, idx := uncompressed(t, dir, samples+"/rocev2-nfs41-midstream.pcap.zst"), filepath.Join(dir, "x.idx")
	xid := xidsOf(t, file, rand.New(rand.NewPCG(16, 10)))[2]
	args := []string{"--limit-memory", "100M", "-T", "json", xid, file}
	indexed := append([]string{"--index", idx}, args...)
	x := showWith(t, indexed...)
	x.same(t, showWith(t, args...), "made")
	var tx struct {
		Packets []struct{ Frame uint64 }
	}
	if err := json.Unmarshal([]byte(strings.SplitN(x.out, "\n", 2)[0]), &tx); err != nil || len(tx.Packets) == 0 {
		t.Fatal(err)
	}
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for p, err := range capture.Packets(r) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Number != tx.Packets[0].Frame {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data[p.Offset+4]++ // its time
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		got := showWith(t, indexed...)
		got.same(t, showWith(t, args...), "changed")
		if !strings.Contains(got.notes, "other contents") {
			t.Errorf("notes %q", got.notes)
		}
		return
	}
}

// TestIndexRefused refuses what an index does not go with, and files that are none.
func TestIndexRefused(t *testing.T) {
	small(t, 1)
	dir := t.TempDir()
	file, idx := uncompressed(t, dir, samples+"/rocev2-rping.pcap"), filepath.Join(dir, "x.idx")
	note := filepath.Join(dir, "note.txt")
	if err := os.WriteFile(note, []byte("what I wanted to remember, at some length: "+strings.Repeat("x", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--index", idx, "1", file, file}, "for one file"},
		{[]string{"--index", idx, "1", "-"}, "for one file"},
		{[]string{"--index", idx, "--follow", "1", file}, "not for -i and --follow"},
		{[]string{"--index", "-", "1", file}, "is a file"},
		{[]string{"--index", note, "1", file}, "not an index"},
		{[]string{"--index", dir, "1", file}, "is a directory"},
		{[]string{"--index", file, "1", file}, file},
		{[]string{"--index", idx, "1", samples + "/rocev2-nfs3-meta.pcap.zst"}, "not compressed"},
	} {
		x := showWith(t, c.args...)
		if x.code != cli.ExitUsage && x.code != cli.ExitFailure || !strings.Contains(x.err+x.notes, c.want) {
			t.Errorf("%v: exit status %d: %s", c.args, x.code, x.err)
		}
	}
	if p, err := os.ReadFile(note); err != nil || !strings.HasPrefix(string(p), "what I wanted") {
		t.Error("a file that is no index was replaced")
	}
	// Made with other options: kept, and not used.
	file = uncompressed(t, dir, samples+"/rocev2-nfs41-recall.pcap")
	showWith(t, "--index", idx, "1", file)
	before, err := os.ReadFile(idx)
	if err != nil {
		t.Fatal(err)
	}
	x := showWith(t, "--index", idx, "--no-icrc", "1", file)
	if !strings.Contains(x.notes, "is not used") || !strings.Contains(x.notes, "remove it") {
		t.Errorf("notes %q", x.notes)
	}
	if after, err := os.ReadFile(idx); err != nil || !bytes.Equal(before, after) {
		t.Error("an index for other options was replaced")
	}
}
