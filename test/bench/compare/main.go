// Command compare measures programs side by side on the same captures:
// rpcrdma-dump in its modes, tshark computing the response times of the same
// RPCs, a plain walk over the records that only checks ICRCs (test/bench/walk), and dd, which only reads.
//
//	go run ./test/bench/compare [-n 5] [-o report.md] FILE...
//	go run ./test/bench/compare -gate [-update]
//
// With -gate it makes captures of its own, has valgrind count the instructions that rpcrdma-dump takes for a packet (see count),
// and fails if they are more than the committed file instructions.tsv says; exit status 77 means that nothing could be judged.
//
// In each of n rounds every program runs once on every file, so that whatever
// else the machine does falls on all of them. The report gives medians.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "n", 5, "rounds")
	flag.StringVar(&o.output, "o", "", "write the report to this file, too")
	flag.StringVar(&o.tshark, "tshark", "tshark", "tshark, or empty to leave it out")
	flag.IntVar(&o.tsharkRounds, "tshark-rounds", 0, "rounds in which tshark takes part (0: all)")
	flag.StringVar(&o.dump, "dump", "", "rpcrdma-dump (default: built from this tree)")
	flag.BoolVar(&o.gate, "gate", false, "fail if a packet takes more instructions than the committed figures say")
	flag.BoolVar(&o.update, "update", false, "with -gate: write the figures anew")
	flag.BoolVar(&o.base, "base", false, "with -gate -update -dump: write those of an rpcrdma-dump of the base")
	flag.BoolVar(&o.release, "release", false, "compile the Go programs with the profile of releases, as people install them")
	flag.StringVar(&o.procs, "procs", "", "GOMAXPROCS of the Go programs (default: all)")
	flag.Parse()
	o.files = flag.Args()
	if (len(o.files) == 0) != o.gate || o.rounds < 1 || o.update && !o.gate || o.base != (o.update && o.dump != "") {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, &o)
	stop()
	if errors.Is(err, errNotRun) {
		fmt.Fprintf(os.Stderr, "\n*** %v ***\n\n", err)
		os.Exit(notRun)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds, tsharkRounds int
	output, tshark       string
	dump, procs          string
	release              bool
	gate, update, base   bool
	files                []string
}

// program is one way to read a capture.
type program struct {
	name string
	args func(f *input) []string
	env  []string
	// rounds in which it takes part
	rounds int
}

// input is a capture with what is known of it.
type input struct {
	path    string
	bytes   int64
	packets uint64
	version uint32 // of NFS
}

// run builds, measures and reports.
func run(ctx context.Context, o *options) error {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.gate {
		return gate(ctx, o, dir)
	}
	programs, err := prepare(ctx, o, dir)
	if err != nil {
		return err
	}
	var inputs []*input
	for _, f := range o.files {
		in, err := inspect(f)
		if err != nil {
			return err
		}
		inputs = append(inputs, in)
	}
	var b bytes.Buffer
	head(&b, o)
	runs := make(map[string]map[*input][]sample)
	for _, p := range programs {
		runs[p.name] = make(map[*input][]sample)
	}
	for round := range o.rounds {
		for _, in := range inputs {
			for _, p := range programs {
				if round >= p.rounds {
					continue
				}
				s, err := measure(ctx, p, in)
				if err != nil {
					return err
				}
				runs[p.name][in] = append(runs[p.name][in], s)
				fmt.Fprintf(os.Stderr, "round %d/%d %s %s: %.2f s\n", round+1, o.rounds, filepath.Base(in.path), p.name, s.wall.Seconds())
			}
		}
	}
	for _, in := range inputs {
		table(&b, in, programs, runs)
	}
	os.Stdout.Write(b.Bytes())
	if o.output != "" {
		return os.WriteFile(o.output, b.Bytes(), 0o666)
	}
	return nil
}

const (
	nameDD     = "dd bs=1M"
	nameWalk   = "plain walk with ICRC"
	nameTshark = "tshark -q -z rpc,srt"
)

// moduleRoot is the folder of this module.
func moduleRoot(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// build builds a program of this module into dir.
func build(ctx context.Context, root, dir, pkg string, flags ...string) (string, error) {
	out := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", out}, flags, []string{pkg})...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	return out, cmd.Run()
}

// prepare builds what is to be measured.
func prepare(ctx context.Context, o *options, dir string) ([]*program, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	var flags []string
	if o.release {
		flags = append(flags, "-pgo=release/rpcrdma.pgo")
	}
	walk, err := build(ctx, root, dir, "./test/bench/walk", flags...)
	if err != nil {
		return nil, err
	}
	dump := o.dump
	if dump == "" {
		if dump, err = build(ctx, root, dir, "./cmd/rpcrdma-dump", flags...); err != nil {
			return nil, err
		}
	}
	var env []string
	if o.procs != "" {
		env = append(env, "GOMAXPROCS="+o.procs)
	}
	one := func(program string, flags ...string) func(*input) []string {
		return func(f *input) []string { return slices.Concat([]string{program}, flags, []string{f.path}) }
	}
	programs := []*program{
		{name: nameDD, args: func(f *input) []string { return []string{"dd", "if=" + f.path, "of=" + os.DevNull, "bs=1M"} }, rounds: o.rounds},
		{name: nameWalk, args: one(walk), env: env, rounds: o.rounds},
		{name: "rpcrdma-dump -q", args: one(dump, "-q"), env: env, rounds: o.rounds},
		{name: "rpcrdma-dump", args: one(dump), env: env, rounds: o.rounds},
		{name: "rpcrdma-dump -T ndjson", args: one(dump, "-T", "ndjson"), env: env, rounds: o.rounds},
	}
	if o.tshark != "" {
		rounds := o.rounds
		if o.tsharkRounds > 0 {
			rounds = min(rounds, o.tsharkRounds)
		}
		path, err := exec.LookPath(o.tshark)
		if err != nil {
			return nil, fmt.Errorf("%w; -tshark '' leaves it out", err)
		}
		programs = append(programs, &program{
			name: nameTshark, rounds: rounds,
			args: func(f *input) []string {
				return []string{path, "-n", "-q", "-z", "rpc,srt,100003," + strconv.Itoa(int(f.version)), "-r", f.path}
			},
		})
	}
	return programs, nil
}

// inspect counts the packets of a capture, which also brings it into the page
// cache, and finds out which version of NFS it is about.
func inspect(path string) (*input, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	in := &input{path: path, bytes: st.Size()}
	r, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	versions := make(map[uint32]int)
	d := decode.New(decode.Options{SkipICRC: true}, func(tx *transaction.Transaction) {
		if tx.Program == 100003 {
			versions[tx.Version]++
		}
	})
	if err := d.Run(r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	in.packets = d.Stats().Packets
	for v, n := range versions {
		if n > versions[in.version] {
			in.version = v
		}
	}
	if in.packets == 0 {
		return nil, fmt.Errorf("%s: no packets", path)
	}
	return in, nil
}

// sample is one run of a program.
type sample struct {
	wall, user, sys time.Duration
	rss             int64 // largest resident size in bytes; 0 if not known
}

func measure(ctx context.Context, p *program, in *input) (sample, error) {
	args := p.args(in)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	// A file, so that no pipe and no reader slows the program down.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return sample{}, err
	}
	defer null.Close()
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = null, &stderr
	start := time.Now()
	err = cmd.Run()
	wall := time.Since(start)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return sample{wall: wall, user: cmd.ProcessState.UserTime(), sys: cmd.ProcessState.SystemTime(), rss: maxRSS(cmd.ProcessState)}, nil
}

func head(w io.Writer, o *options) {
	version := ""
	if o.tshark != "" {
		if out, err := exec.Command(o.tshark, "--version").Output(); err == nil {
			version, _, _ = strings.Cut(string(out), "\n")
		}
	}
	fmt.Fprintf(w, "%s, %d CPUs, %s, %s", cpu(), runtime.NumCPU(), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
	if version != "" {
		fmt.Fprintf(w, ", %s", strings.TrimSuffix(strings.TrimSpace(version), "."))
	}
	if o.procs != "" {
		fmt.Fprintf(w, ", GOMAXPROCS=%s", o.procs)
	}
	fmt.Fprintf(w, "; medians of %d rounds%s\n", o.rounds, load())
}

// cpu names the processor.
func cpu() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for _, line := range strings.Split(string(b), "\n") {
		if key, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

// load is a remark on what else the machine had to do.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return ""
	}
	return ", load average at the end " + f[0]
}

// table writes the results for one capture.
func table(w io.Writer, in *input, programs []*program, runs map[string]map[*input][]sample) {
	fmt.Fprintf(w, "\n### %s\n\n%s packets, %.1f MB, %.0f bytes a packet, NFSv%d\n\n",
		filepath.Base(in.path), thousands(in.packets), float64(in.bytes)/1e6, float64(in.bytes)/float64(in.packets), in.version)
	fmt.Fprintln(w, "| program | wall s | fastest–slowest | CPU s | packets/s | MB/s | ns/packet | × dd | × tshark | the same in CPU time | CPU time, × plain walk | MiB resident |")
	fmt.Fprintln(w, "|-|-:|-:|-:|-:|-:|-:|-:|-:|-:|-:|-:|")
	base := func(name string, of func(sample) float64) float64 {
		r := runs[name]
		if r == nil || len(r[in]) == 0 {
			return 0
		}
		return median(r[in], of)
	}
	elapsed := func(s sample) float64 { return s.wall.Seconds() }
	spent := func(s sample) float64 { return (s.user + s.sys).Seconds() }
	dd, tshark, tsharkCPU, walkCPU := base(nameDD, elapsed), base(nameTshark, elapsed), base(nameTshark, spent), base(nameWalk, spent)
	ratio := func(of, wall float64) string {
		if of == 0 || wall == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", of/wall)
	}
	for _, p := range programs {
		s := runs[p.name][in]
		if len(s) == 0 {
			continue
		}
		wall := median(s, elapsed)
		low := slices.MinFunc(s, func(a, b sample) int { return int(a.wall - b.wall) }).wall.Seconds()
		high := slices.MaxFunc(s, func(a, b sample) int { return int(a.wall - b.wall) }).wall.Seconds()
		used := median(s, spent)
		rss := median(s, func(s sample) float64 { return float64(s.rss) / (1 << 20) })
		fmt.Fprintf(w, "| %s | %.3f | %.3f–%.3f | %.3f | %s | %.0f | %.0f | %s | %s | %s | %s | %.0f |\n",
			p.name, wall, low, high, used, thousands(uint64(float64(in.packets)/wall)), float64(in.bytes)/1e6/wall,
			wall*1e9/float64(in.packets), ratio(wall, dd), ratio(tshark, wall), ratio(tsharkCPU, used), ratio(used, walkCPU), rss)
	}
}

func median(s []sample, of func(sample) float64) float64 {
	v := make([]float64, len(s))
	for i := range s {
		v[i] = of(s[i])
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// thousands writes a number with commas.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
