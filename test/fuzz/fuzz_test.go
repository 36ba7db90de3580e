package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What the engine of Go prints, and what is made of it.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       progress
		fuzzed     uint64
	}{
		{"passes", `fuzz: elapsed: 0s, gathering baseline coverage: 0/12 completed
fuzz: elapsed: 0s, gathering baseline coverage: 12/12 completed, now fuzzing with 1 workers
fuzz: elapsed: 3s, execs: 3012 (1000/sec), new interesting: 5 (total: 17)
fuzz: elapsed: 4s, execs: 4012 (990/sec), new interesting: 6 (total: 18)
PASS
`, progress{seeds: 12, execs: 4012, elapsed: 4 * time.Second, interesting: 6, total: 18, fuzzing: true}, 4000},
		{"only seeds", "fuzz: elapsed: 3s, gathering baseline coverage: 7/12 completed\n", progress{}, 0},
		{"found", `fuzz: elapsed: 0s, gathering baseline coverage: 3/3 completed, now fuzzing with 1 workers
fuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 0 (total: 3)
--- FAIL: FuzzX (3.00s)
    --- FAIL: FuzzX (0.00s)
        x_test.go:1: bad

    Failing input written to testdata/fuzz/FuzzX/0123
`, progress{seeds: 3, execs: 100, elapsed: 3 * time.Second, total: 3, fuzzing: true, failing: "testdata/fuzz/FuzzX/0123"}, 97},
		{"out of time", `fuzz: elapsed: 0s, gathering baseline coverage: 3/3 completed, now fuzzing with 1 workers
--- FAIL: FuzzX (3.11s)
    context deadline exceeded
`, progress{seeds: 3, fuzzing: true, deadline: true}, 0},
	} {
		var p progress
		started := 0
		if err := p.scan(strings.NewReader(c.text), func() { started++ }); err != nil {
			t.Fatal(err)
		}
		p.text = nil
		if p.seeds != c.want.seeds || p.execs != c.want.execs || p.elapsed != c.want.elapsed || p.interesting != c.want.interesting ||
			p.total != c.want.total || p.fuzzing != c.want.fuzzing || p.failing != c.want.failing || p.deadline != c.want.deadline {
			t.Errorf("%s: %+v, want %+v", c.name, p, c.want)
		}
		if p.fuzzed() != c.fuzzed || (started == 1) != p.fuzzing {
			t.Errorf("%s: %d executions, started %d times", c.name, p.fuzzed(), started)
		}
	}
}

// A target whose seeds take longer than its time is given more time.
func TestManySeeds(t *testing.T) {
	for _, c := range []struct {
		name    string
		seeding int // seconds that the seeds take
		runs    string
		seeds   string
	}{
		{"few seeds", 0, "1s\n", "2/2 completed, now fuzzing with 1 workers"},
		{"many", 7, "1s\n2s\n3s\n5s\n9s\n", "2/2 completed, now fuzzing with 1 workers"},
		{"never", 1 << 30, "1s\n2s\n3s\n5s\n9s\n17s\n33s\n1m5s\n2m9s\n4m17s\n", ""},
	} {
		dir := t.TempDir()
		// The engine of Go, but for its time, which does not pass.
		engine := filepath.Join(dir, "engine")
		script := fmt.Sprintf(`#!/bin/sh
for a; do case "$a" in -test.fuzztime=*) d=${a#*=} ;; esac; done
echo "$d" >>runs
m=0 s=${d%%s}
case "$s" in *m*) m=${s%%%%m*} s=${s#*m} ;; esac
if [ $((60 * m + s)) -gt %d ]; then
	echo "fuzz: elapsed: 0s, gathering baseline coverage: %s"
	echo "fuzz: elapsed: 1s, execs: 1002 (1000/sec), new interesting: 0 (total: 2)"
else
	echo "fuzz: elapsed: $d, gathering baseline coverage: 1/2 completed"
fi
echo PASS
`, c.seeding, c.seeds)
		if err := os.WriteFile(engine, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		r := &runner{
			options: &options{time: time.Second, work: dir}, module: &module{root: dir}, notes: io.Discard,
			built: map[string]*binary{"": {path: engine}},
		}
		res := new(result)
		if err := r.spend(t.Context(), target{"", "FuzzX"}, dir, res); err != nil {
			t.Fatal(err)
		}
		runs, err := os.ReadFile(filepath.Join(dir, "runs"))
		if err != nil || string(runs) != c.runs {
			t.Errorf("%s: runs of %q, want %q (%v)", c.name, runs, c.runs, err)
		}
		if fuzzed := c.seeds != ""; (res.fuzzed == 1000) != fuzzed || !fuzzed && res.cpu != 0 {
			t.Errorf("%s: %+v", c.name, res)
		}
	}
}

// The corpus stays out of the checkout, also by way of a link.
func TestOutside(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	if _, err := outside(filepath.Join(root, "corpus"), root); err == nil {
		t.Error("a directory in the checkout was taken")
	}
	if _, err := outside(root, root); err == nil {
		t.Error("the checkout was taken")
	}
	link := filepath.Join(other, "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	if _, err := outside(filepath.Join(link, "x"), root); err == nil {
		t.Error("a link into the checkout was taken")
	}
	if dir, err := outside(root+"-corpus", root); err != nil || dir != root+"-corpus" {
		t.Error(dir, err)
	}
	_ = os.RemoveAll(root + "-corpus")
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"-no-such-flag"}, 2},
		{[]string{"-target", "("}, 2},
		{[]string{"-time", "0s"}, 2},
		{[]string{"-jobs", "0"}, 2},
		{[]string{"-jobs", "1000000"}, 2},
		{[]string{"-help"}, 0},
		{[]string{"-target", "no such target", "."}, 1},
		{[]string{"-list", "../../decode/tcp"}, 0},
	} {
		var out, notes bytes.Buffer
		if got := run(c.args, &out, &notes); got != c.want {
			t.Errorf("%q: status %d, want %d\n%s", c.args, got, c.want, &notes)
		}
		if c.args[0] == "-list" && out.String() != "decode/tcp.FuzzStream\n" {
			t.Errorf("%q", &out)
		}
	}
}

// The copy of links shows a package its files, the samples, and the corpus as
// seeds.
func TestShadow(t *testing.T) {
	root, corpus := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"samples/a.pcap": "sample", "a/b/b.go": "code", "a/b/testdata/golden": "golden", "a/b/testdata/fuzz/FuzzX/seed": "seed", "a/b/testdata/fuzz/FuzzY/seed": "other",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(corpus, "0123"), []byte("found"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := &module{root: root}
	dir, err := m.shadow(target{"a/b", "FuzzX"}, corpus, filepath.Join(t.TempDir(), "shadow"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"b.go": "code", "testdata/golden": "golden", "testdata/fuzz/FuzzX/0-seed": "seed", "testdata/fuzz/FuzzX/1-0123": "found", "../../samples/a.pcap": "sample",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// What is not there is not used.
func TestRoomy(t *testing.T) {
	if roomy(filepath.Join(t.TempDir(), "none")) {
		t.Error("room in what is not there")
	}
}

// The time of a process counts that of its children.
func TestFamilyTime(t *testing.T) {
	if familyTime(os.Getpid()) < 0 {
		t.Error("negative")
	}
	sum := 0
	for start := time.Now(); familyTime(os.Getpid()) == 0 && time.Since(start) < time.Minute; {
		for i := range 1 << 20 {
			sum += i
		}
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil && familyTime(os.Getpid()) == 0 {
		t.Error("no time has passed", sum)
	}
}
