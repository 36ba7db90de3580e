package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// tolerance is by how much more instructions a packet may take than the committed figure says.
const tolerance = 3 // percent

// notRun is the exit status that says that nothing could be judged.
const notRun = 77

// errNotRun is wrapped by errors that say why nothing could be judged.
var errNotRun = errors.New("instructions were not counted")

// traffic is a sample with the numbers of repetitions whose difference counts.
type traffic struct {
	sample      string
	short, long int
}

var (
	meta = traffic{"rocev2-nfs3-meta", 5, 20} // small packets
	bulk = traffic{"rocev2-nfs3-bulk", 1, 3}  // large ones
)

// workloads are what the gate counts. Each has a line in the file of figures.
var workloads = []struct {
	name    string
	traffic traffic
	args    []string
}{
	{"-q", meta, []string{"-q"}},
	{"listing", meta, []string{"-n"}},
	{"ndjson", meta, []string{"-T", "ndjson"}},
	{"report", meta, []string{"report"}},
	{"check", meta, []string{"check"}},
	{"parquet", meta, []string{"export", "parquet", "-w", "-"}},
	{"bulk -q", bulk, []string{"-q"}},
	{"bulk check", bulk, []string{"check"}},
}

// figure is a line of the file of figures.
type figure struct {
	name       string
	want, base float64 // instructions a packet: committed; before the redesign
	allowed    float64 // percent more than base
}

// figures is the file of figures: what counted them, and the lines.
type figures struct {
	with  string
	lines []figure
}

// readFigures reads the file of figures.
func readFigures(name string) (*figures, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f figures
	for i, line := range strings.Split(string(b), "\n") {
		if with, ok := strings.CutPrefix(line, "# with: "); ok {
			f.with = with
		}
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 4 {
			return nil, fmt.Errorf("%s:%d: %d columns, want 4", name, i+1, len(columns))
		}
		one := figure{name: columns[0]}
		for c, p := range []*float64{&one.want, &one.base, &one.allowed} {
			if *p, err = strconv.ParseFloat(columns[c+1], 64); err != nil || *p < 0 {
				return nil, fmt.Errorf("%s:%d: column %d: %q is no figure", name, i+1, c+2, columns[c+1])
			}
		}
		f.lines = append(f.lines, one)
	}
	if len(f.lines) != len(workloads) {
		return nil, fmt.Errorf("%s: %d lines, want one for each of the %d workloads", name, len(f.lines), len(workloads))
	}
	for i, w := range workloads {
		if f.lines[i].name != w.name {
			return nil, fmt.Errorf("%s: %q, want a line for %q here", name, f.lines[i].name, w.name)
		}
	}
	return &f, nil
}

// write writes the file of figures.
func (f *figures) write(w io.Writer) {
	fmt.Fprintf(w, `# Instructions a packet. "go run ./test/bench/compare -gate" fails if one is more than %d %% above COMMITTED, or above
# BASE (commit 87215e82) by more than ALLOWED per cent. With -update it writes what it counts into COMMITTED. Columns are
# separated by tabs: WORKLOAD, COMMITTED, BASE, ALLOWED.
# with: %s
`, tolerance, f.with)
	for _, l := range f.lines {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\n", l.name, l.want, l.base, l.allowed)
	}
}

// gate counts the instructions a packet of all workloads, and compares them with the committed figures.
func gate(ctx context.Context, o *options, dir string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	name := filepath.Join(root, "test", "bench", "compare", "instructions.tsv")
	committed, err := readFigures(name)
	if err != nil {
		return err
	}
	with, err := counter(ctx)
	if err != nil {
		return err
	}
	if with != committed.with && !o.update {
		return fmt.Errorf("%w: this is %s, the figures are of %s; -update writes new ones", errNotRun, with, committed.with)
	}
	dump := o.dump
	if dump == "" {
		if dump, err = build(ctx, root, dir, "./cmd/rpcrdma-dump"); err != nil {
			return err
		}
	}
	counted, err := perPacket(ctx, root, dir, dump)
	if err != nil {
		return err
	}
	over := judge(os.Stdout, committed.lines, counted)
	if o.update {
		committed.with = with
		for i, n := range counted {
			if o.base {
				committed.lines[i].base = n
			} else {
				committed.lines[i].want = n
			}
		}
		var b bytes.Buffer
		committed.write(&b)
		return os.WriteFile(name, b.Bytes(), 0o666)
	}
	if over > 0 {
		return fmt.Errorf("%d of %d workloads take more instructions than they may; if that is meant: -gate -update", over, len(workloads))
	}
	return nil
}

// judge writes what was counted beside what is committed, and returns how many workloads take too much.
func judge(w io.Writer, committed []figure, counted []float64) int {
	fmt.Fprintln(w, "| workload | instructions a packet | committed | change | base | change | allowed | |")
	fmt.Fprintln(w, "|-|-:|-:|-:|-:|-:|-:|-|")
	over := 0
	for i, f := range committed {
		n, verdict := counted[i], ""
		more := func(than float64) float64 { return 100 * (n - than) / than }
		switch {
		case more(f.want) > tolerance:
			verdict = "MORE THAN COMMITTED"
		case more(f.base) > f.allowed:
			verdict = "MORE THAN ALLOWED"
		}
		if verdict != "" {
			over++
		}
		fmt.Fprintf(w, "| %s | %.0f | %.0f | %+.1f %% | %.0f | %+.1f %% | %+.0f %% | %s |\n", f.name, n, f.want, more(f.want), f.base, more(f.base), f.allowed, verdict)
	}
	return over
}

// counter names what figures depend on: the compiler, the machine as valgrind shows it to programs, and valgrind.
func counter(ctx context.Context) (string, error) {
	valgrind, err := exec.CommandContext(ctx, "valgrind", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%w: valgrind: %w", errNotRun, err)
	}
	compiler, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s/%s, %s", bytes.TrimSpace(compiler), runtime.GOOS, runtime.GOARCH, bytes.TrimSpace(valgrind)), nil
}

// perPacket counts the instructions a packet of all workloads. Counting needs processors and little else, so all of them work.
func perPacket(ctx context.Context, root, dir, dump string) ([]float64, error) {
	repeat, err := build(ctx, root, dir, "./internal/testtools/repeat")
	if err != nil {
		return nil, err
	}
	inputs := make(map[traffic][2]*input)
	for _, t := range []traffic{meta, bulk} {
		var pair [2]*input
		for i, n := range []int{t.short, t.long} {
			path := filepath.Join(dir, fmt.Sprintf("%s-%d.pcap", t.sample, n))
			from := filepath.Join(root, "samples", t.sample+".pcap.zst")
			if out, err := exec.CommandContext(ctx, repeat, "-n", strconv.Itoa(n), from, path).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("repeat: %w\n%s", err, out)
			}
			if pair[i], err = inspect(path); err != nil {
				return nil, err
			}
		}
		inputs[t] = pair
	}
	counts, failures := make([][2]uint64, len(workloads)), make([]error, len(workloads))
	slots := make(chan struct{}, runtime.NumCPU())
	var group sync.WaitGroup
	for i, w := range workloads {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			for k, in := range inputs[w.traffic] {
				if counts[i][k], failures[i] = count(ctx, w.args[0] == "check", slices.Concat([]string{dump}, w.args, []string{in.path})...); failures[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	each := make([]float64, len(workloads))
	for i, w := range workloads {
		in := inputs[w.traffic]
		each[i] = math.Round((float64(counts[i][1]) - float64(counts[i][0])) / float64(in[1].packets-in[0].packets))
	}
	return each, nil
}
