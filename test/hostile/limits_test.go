//go:build hostile

package hostile_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/hostile"
)

// The goal: whatever a capture holds, with the defaults every command stays
// below this much memory, and twice the capture takes twice the time.
const (
	memoryGoal = 256 << 20
	suspicious = 2.5 // a ratio of CPU times from which on more inputs are measured, where 2 is linear
	ratioGoal  = 9.0 // of inputs of which one is four times the other, where 4 is linear and 16 the square
	tries      = 12  // of a ratio, so that load elsewhere on the machine is not taken for the program's time
)

// limited is a memory limit with which every command is run once more. It must be obeyed
// within a fifth.
const (
	limited     = "64M"
	limitedGoal = 64 << 20 * 6 / 5
)

// least is the least CPU time that can be compared.
const least = 300 * time.Millisecond

// full measures every command with every kind of capture in the sizes of
// README.md, which takes hours; without it there is one capture that holds
// all kinds, and those kinds for each command that once were too much for it.
var full = flag.Bool("full", false, "measure every command with every hostile capture in its documented size")

// row is a way to call a command.
type row struct {
	name string // as the caller types it, without options
	args string // %f is the capture, %d a directory of its own
	// statuses besides 0 (all is well) and 3 (the input is damaged)
	fails bool // 1: it found what it was to look for, or has reported a limit
	hard  []hard
}

// hard is a kind of capture with the number of units that is tried, and twice
// as many. Numbers are such that start-up does not count.
type hard struct {
	kind string
	n    int
}

const (
	dump   = "rpcrdma-dump"
	top    = "rpcrdma-top"
	replay = "rpcrdma-replay"
)

var rows = []row{
	{name: dump, args: "-q %f", hard: []hard{{"open-calls", 500}, {"write-chunks", 250}, {"read-segments", 500}, {"queue-pairs", 40000}, {"record-marks", 40000}}},
	{name: dump, args: "%f", hard: []hard{{"deep-names", 10000}, {"wide-compound", 200000}}},
	{name: dump, args: "-v %f"},
	{name: dump, args: "-vv -x %f", hard: []hard{{"listings", 2}}},
	{name: dump, args: "-T ndjson %f"},
	{name: dump, args: "-T json %f"},
	{name: dump, args: "-T fields -e file.name -e op -e status -e client -e notes %f"},
	{name: dump, args: `-q -Y op==READ||file.name~"x" %f`},
	{name: dump, args: "--sort completion %f"},
	{name: dump, args: "-q --extract-data %d/x %f", fails: true, hard: []hard{{"far-offsets", 600}, {"scattered", 40000}}},
	{name: dump + " packets", args: "%f"},
	{name: dump + " connections", args: "%f", hard: []hard{{"udp-ports", 30000}, {"cm-requests", 20000}, {"random-psn", 20000}, {"queue-pairs", 20000}}},
	{name: dump + " operations", args: "%f", hard: []hard{{"random-psn", 20000}, {"queue-pairs", 20000}, {"writes", 20000}}},
	{name: dump + " operations", args: "-T ndjson %f"},
	{name: dump + " sessions", args: "%f", hard: []hard{{"sessions", 20000}, {"slots", 6000}, {"queue-pairs", 20000}}},
	{name: dump + " sessions", args: "-v -T ndjson %f"},
	{name: dump + " report", args: "%f", hard: []hard{{"timeline", 20000}}},
	{name: dump + " report", args: "--view fabric %f", hard: []hard{{"timeline", 20000}, {"random-psn", 20000}, {"queue-pairs", 20000}, {"cm-requests", 20000}}},
	{name: dump + " report", args: "--view fabric -T json --interval 1us --top 1000 %f"},
	{name: dump + " report", args: "-v --by client,operation,file %f"},
	{name: dump + " report", args: "-T json --by procedure,status,connection,size,model,fabric,server %f"},
	{name: dump + " report", args: "--interval 1ms %f"},
	{name: dump + " report", args: "--html %d/report.html --by file %f"},
	{name: dump + " why", args: "%f"},
	{name: dump + " why", args: "-T json %f"},
	{name: dump + " scrub", args: "-w %d/s.pcapng %f"},
	{name: dump + " check", args: "%f", fails: true, hard: []hard{{"mistakes", 10000}}},
	{name: dump + " check", args: "-T ndjson --profile linux %f", fails: true},
	{name: dump + " show", args: "00000001 0000002a 00000100 %f", fails: true, hard: []hard{{"same-xid", 20000}, {"writes", 20000}}},
	{name: dump + " diff", args: "--by file,client %f %f"},
	{name: dump + " split", args: "--by connection -w %d/{n}.pcapng %f", fails: true, hard: []hard{{"queue-pairs", 60000}}},
	{name: dump + " split", args: "--by client -w %d/{n}.pcapng %f", fails: true},
	{name: dump + " split", args: "--by time=1ms -w %d/{n}.pcapng %f", fails: true},
	{name: dump + " split", args: "-Y op==READ -w %d/one.pcapng %f", fails: true},
	{name: dump + " annotate", args: "-w %d/a.pcapng %f", hard: []hard{{"writes", 20000}}},
	{name: dump + " export parquet", args: "%f -w %d/p.parquet"},
	{name: dump + " export trace", args: "%f -w %d/t.json"},
	{name: dump + " kernel", args: "--ftrace %d/empty %f", fails: true},
	{name: dump + " capture", args: "-r %f -w %d/c.pcapng"},
	{name: top, args: "--batch 0 -r %f", hard: []hard{{"queue-pairs", 100000}, {"clients", 100000}, {"addresses", 100000}, {"timeline", 20000}}},
	{name: top, args: "--batch 5 -d 100ms -r %f"},
	{name: replay + " plan", args: "%f -o %d/plan", hard: []hard{
		{"files", 20000}, {"deep-compounds", 10}, {"queue-pairs", 30000}, {"listings", 1}, {"slots", 6000}, {"names", 15000}, {"creates", 8000}, {"sessions", 8000},
		{"listings-plus", 20}, {"wide-compound", 30000},
	}},
	{name: replay + " plan", args: "-T json --payload pattern %f"},
	{name: replay + " serve", args: "--playback %f --provider tcp --listen 127.0.0.1 --tcp-port 0 --with-parent", hard: []hard{{"names", 20000}, {"compound-reads", 100}}},
	{name: replay + " run", args: "%f builtin", fails: true, hard: []hard{{"files", 4000}, {"writes", 8000}, {"creates", 3000}}},
}

// exempt has the commands that read no capture, and where their limits are tested.
var exempt = map[string]string{
	dump + " completion": "reads nothing", top + " completion": "reads nothing", replay + " completion": "reads nothing",
	dump + " help": "reads nothing", top + " help": "reads nothing", replay + " help": "reads nothing",
	dump + " man": "reads nothing", top + " man": "reads nothing", replay + " man": "reads nothing",
	dump + " export":    "only a group of commands",
	dump + " extcap":    "captures, and has annotate read it",
	replay:              "only a group of commands",
	replay + " bench":   "reads nothing",
	replay + " compare": "reads reports of up to 64 MB: TestLoad",
}

// TestCommands compares the rows with the commands that the programs list.
func TestCommands(t *testing.T) {
	known := map[string]bool{}
	for _, r := range rows {
		known[r.name] = true
	}
	found := map[string]bool{}
	for _, p := range []string{dump, top, replay} {
		for _, c := range commands(t, program(t, p), p, nil) {
			found[c] = true
			if !known[c] && exempt[c] == "" {
				t.Errorf("no hostile capture is tried with %q: add a row to the table of this test", c)
			}
		}
	}
	for c := range known {
		if !found[c] {
			t.Errorf("there is no command %q", c)
		}
	}
	for c := range exempt {
		if !found[c] {
			t.Errorf("there is no command %q to exempt", c)
		}
	}
}

// commands lists a program and its commands, from what --help says.
func commands(t *testing.T, bin, name string, path []string) []string {
	t.Helper()
	out, err := exec.Command(bin, append(slices.Clone(path), "--help")...).Output()
	if err != nil {
		t.Fatalf("%s --help: %v", name, err)
	}
	list := []string{name}
	_, rest, _ := strings.Cut(string(out), "Available Commands:\n")
	for line := range strings.Lines(rest) {
		word := strings.Fields(line)
		if !strings.HasPrefix(line, "  ") || len(word) == 0 {
			break
		}
		if len(path) == 0 && word[0] == "completion" {
			list = append(list, name+" completion")
			continue
		}
		list = append(list, commands(t, bin, name+" "+word[0], append(slices.Clone(path), word[0]))...)
	}
	return list
}

// TestLimits runs every command and compares its memory, its time and how it ends
// with the goal.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	files := &captures{dir: dir}
	idle := startup(t)
	for _, r := range rows {
		t.Run(strings.NewReplacer("%f", "FILE", "%d/", "", " ", "_", "/", "").Replace(r.name+" "+r.args), func(t *testing.T) {
			if !*full {
				t.Parallel() // what is measured is the programs' own time and memory
			}
			if *full {
				for _, k := range hostile.Kinds() {
					t.Run(k.Name, func(t *testing.T) {
						r.linear(t, idle, func(times int) string { return files.of(t, k.Name, max(1, times*k.Table/2)) })
						files.forget()
					})
				}
				return
			}
			r.linear(t, idle, func(times int) string { return files.mix(t, 2*times) })
			t.Run(limited, func(t *testing.T) { r.run(t, files.mix(t, 4), "--limit-memory", limited) })
			for _, h := range r.hard {
				t.Run(h.kind, func(t *testing.T) {
					r.linear(t, idle, func(times int) string { return files.of(t, h.kind, times*h.n) })
				})
			}
		})
	}
}

// linear runs a command with captures of several sizes and judges how its time grows.
func (r *row) linear(t *testing.T, idle time.Duration, file func(times int) string) {
	t.Helper()
	g := growth(func(times int) time.Duration { return r.run(t, file(times)).CPU - idle })
	t.Log(g)
	if !g.linear {
		t.Error("not linear")
	}
}

// grown is how the CPU time of a command grows with its input.
type grown struct {
	took   map[int]time.Duration // by how many times the input was given
	linear bool
}

func (g grown) String() string {
	var b strings.Builder
	for i, times := range slices.Sorted(maps.Keys(g.took)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d times the input: %v", times, g.took[times].Round(time.Millisecond))
	}
	return b.String()
}

// growth measures an input and one twice as large. What runs beside a program can cost it
// time, but not save it any, so that the least of some tries counts; there are more than
// one only if the ratio looks bad. A table that is full, or a file that takes what does not
// fit, may cost much at some size: then four times as much once more costs four times the
// time, and what grows with the square sixteen times. The goal lies between the two: a
// machine or a file system may be twice as slow at one size as at another.
func growth(cost func(times int) time.Duration) grown {
	g := grown{took: map[int]time.Duration{}}
	below := func(n, m int, goal float64) bool {
		for range tries {
			for _, times := range []int{n, m} {
				c := cost(times)
				if before, ok := g.took[times]; !ok || c < before {
					g.took[times] = c
				}
			}
			if g.took[m] < least || float64(g.took[m]) < goal*float64(max(g.took[n], time.Millisecond)) {
				return true
			}
		}
		return false
	}
	g.linear = below(1, 2, suspicious) || below(2, 8, ratioGoal)
	return g
}

// TestGrowth judges times that are known.
func TestGrowth(t *testing.T) {
	second := func(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }
	for _, c := range []struct {
		name   string
		cost   func(n float64, call int) float64 // seconds
		linear bool
	}{
		{"linear", func(n float64, _ int) float64 { return n }, true},
		{"logarithm", func(n float64, _ int) float64 { return n * math.Log2(1000*n) }, true},
		{"start", func(n float64, _ int) float64 { return 1 + n }, true},
		{"step", func(n float64, _ int) float64 { return n * min(1+9*(n-1), 10) }, true},
		{"slow four times of five", func(n float64, call int) float64 {
			if call%5 != 0 {
				return n * float64(1+call%4)
			}
			return n
		}, true},
		{"slower when large", func(n float64, _ int) float64 { return n * min(n, 2) }, true},
		{"too short", func(n float64, _ int) float64 { return n * n / 1000 }, true},
		{"square", func(n float64, _ int) float64 { return n * n }, false},
		{"square behind a line", func(n float64, _ int) float64 { return n + n*n }, false},
		{"cube", func(n float64, _ int) float64 { return n * n * n }, false},
	} {
		calls := 0
		g := growth(func(times int) time.Duration {
			calls++
			return second(c.cost(float64(times), calls))
		})
		if g.linear != c.linear {
			t.Errorf("%s: linear %v, want %v: %v", c.name, g.linear, c.linear, g)
		}
	}
}

// once runs a command with a capture and further flags.
func (r *row) once(t *testing.T, file string, flags ...string) cost {
	t.Helper()
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(r.name)
	args := append([]string{program(t, words[0])}, words[1:]...)
	for _, a := range strings.Fields(r.args) {
		args = append(args, strings.NewReplacer("%f", file, "%d", dir).Replace(a))
	}
	return measure(t, append(args, flags...))
}

// expected reports whether a run ended as it should.
func (r *row) expected(c cost) bool {
	return (c.Status == 0 || c.Status == 3 || c.Status == 1 && r.fails) &&
		!strings.Contains(c.Stderr, "goroutine ") && !strings.Contains(c.Stderr, "internal error")
}

// run runs a command with a capture and further flags, and judges all but its time.
func (r *row) run(t *testing.T, file string, flags ...string) cost {
	t.Helper()
	goal := int64(memoryGoal)
	if len(flags) > 0 {
		goal = limitedGoal
	}
	c := r.once(t, file, flags...)
	// The limit steers the garbage collector, which gets its share of the processors late if
	// others run beside it: what was exceeded once has to be exceeded again.
	for range tries - 1 {
		if c.Memory >= goal {
			c = r.once(t, file, flags...)
		}
	}
	if c.Memory >= goal {
		t.Errorf("%s %s: %d MiB resident", filepath.Base(file), strings.Join(flags, " "), c.Memory>>20)
	}
	if !r.expected(c) {
		t.Errorf("%s: exit status %d: %s", filepath.Base(file), c.Status, c.Stderr)
	}
	return c
}

// startup is the time that a program takes without input.
func startup(t *testing.T) time.Duration {
	t.Helper()
	least := time.Hour
	for range 3 {
		least = min(least, measure(t, []string{program(t, dump), "--version"}).CPU)
	}
	return least
}

// captures makes captures when they are needed.
type captures struct {
	dir  string
	mu   sync.Mutex
	made []string
}

func (c *captures) of(t *testing.T, kind string, n int) string {
	t.Helper()
	k, err := hostile.Find(kind)
	if err != nil {
		t.Fatal(err)
	}
	return c.file(t, fmt.Sprintf("%s-%d.pcap", kind, n), func(w io.Writer) error { return k.Write(w, n) })
}

func (c *captures) mix(t *testing.T, size int) string {
	t.Helper()
	return c.file(t, fmt.Sprintf("mix-%d.pcap", size), func(w io.Writer) error { return hostile.Mix(w, size) })
}

func (c *captures) file(t *testing.T, name string, write func(io.Writer) error) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	path := filepath.Join(c.dir, name)
	if slices.Contains(c.made, path) {
		return path
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	c.made = append(c.made, path)
	return path
}

// forget removes captures that are too large to keep.
func (c *captures) forget() {
	for _, f := range c.made {
		_ = os.Remove(f)
	}
	c.made = nil
}

// TestKinds checks what the generator promises: the same number gives the
// same bytes, twice the number about twice as many, and what comes of it are
// packets that are decoded.
func TestKinds(t *testing.T) {
	for _, k := range hostile.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			n := max(k.Small/20, 1)
			var a, b, c bytes.Buffer
			for _, w := range []struct {
				to *bytes.Buffer
				n  int
			}{{&a, n}, {&b, n}, {&c, 2 * n}} {
				if err := k.Write(w.to, w.n); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Error("not the same bytes again")
			}
			if r := float64(c.Len()) / float64(a.Len()); r < 1.5 || r > 2.5 {
				t.Errorf("twice the number: %d and %d bytes", a.Len(), c.Len())
			}
			if r := run(a.Bytes()); r.err != nil {
				t.Error(r.err)
			}
		})
	}
}
