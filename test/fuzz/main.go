// Command fuzz runs the module's fuzz targets and prints what each of them did:
//
//	go run ./test/fuzz -time 2s -jobs 2
//	go run ./test/fuzz -time 1h -corpus ~/fuzz-corpus -cover
//
// Each package is built once, while those before are fuzzed, so that the module's
// own packages count what is reached. A target runs with one worker and without
// minimising what is new: by default Go spends up to a minute on each input
// that reaches new code, which leaves no time for fuzzing.
//
// Executions are counted per second of processor time, from the moment the
// seeds have been run: a busy machine does not make a target look slow.
//
// The exit status is 1 if a target found something or was given fewer than 100 inputs beyond its seeds,
// 2 if the command line is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// shm is a file system in memory. A container may have one of 64 MiB, which inputs of a few seconds fill: for each there
// is a file of 4 KiB or more.
const (
	shm     = "/dev/shm"
	shmRoom = 256 << 20
)

// maxJobs bounds what a mistyped -jobs starts.
const maxJobs = 256

type options struct {
	time   time.Duration
	corpus string
	match  *regexp.Regexp
	cover  bool
	list   bool
	nice   bool
	jobs   int
	work   string // temporary files
	fast   string // small ones, in memory where there is a file system for that
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, notes io.Writer) int {
	var o options
	f := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	f.SetOutput(notes)
	f.DurationVar(&o.time, "time", 2*time.Second, "how long each target runs")
	f.StringVar(&o.corpus, "corpus", "", "`directory` that keeps the corpus and the findings between runs, outside of the checkout; none by default")
	match := f.String("target", "", "`regular expression` of the targets, as package.Name; all by default")
	f.BoolVar(&o.cover, "cover", false, "measure afterwards which statements the corpus reaches")
	f.BoolVar(&o.list, "list", false, "list the targets and run none")
	f.IntVar(&o.jobs, "jobs", 1, "how many targets run side by side; each needs one processor")
	f.BoolVar(&o.nice, "nice", false, "leave the processor to others")
	f.Usage = func() {
		fmt.Fprintln(notes, "usage: fuzz [flags] [package pattern]…")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	var err error
	if o.match, err = regexp.Compile(*match); err != nil {
		fmt.Fprintln(notes, "fuzz: -target:", err)
		return 2
	}
	if o.time <= 0 {
		fmt.Fprintln(notes, "fuzz: -time must be positive")
		return 2
	}
	if o.jobs < 1 || o.jobs > maxJobs {
		fmt.Fprintln(notes, "fuzz: -jobs must be from 1 to", maxJobs)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	bad, err := o.all(ctx, f.Args(), out, notes)
	switch {
	case err != nil:
		fmt.Fprintln(notes, "fuzz:", err)
		return 1
	case bad:
		return 1
	}
	return 0
}

// all runs all targets. bad says that one of them found something or was not fuzzed.
func (o *options) all(ctx context.Context, patterns []string, out, notes io.Writer) (bad bool, err error) {
	m, err := loadModule(ctx, patterns)
	if err != nil {
		return false, err
	}
	var targets []target
	for _, t := range m.targets {
		if o.match.MatchString(t.String()) {
			targets = append(targets, t)
		}
	}
	if len(targets) == 0 {
		return false, errors.New("no fuzz target matches")
	}
	if o.list {
		for _, t := range targets {
			fmt.Fprintln(out, t)
		}
		return false, nil
	}
	if o.work, err = os.MkdirTemp("", "fuzz"); err != nil {
		return false, err
	}
	defer os.RemoveAll(o.work)
	o.fast = o.work
	if roomy(shm) {
		if dir, err := os.MkdirTemp(shm, "fuzz"); err == nil {
			o.fast = dir
			defer os.RemoveAll(dir)
		}
	}
	if o.corpus != "" {
		if o.corpus, err = outside(o.corpus, m.root); err != nil {
			return false, err
		}
	}
	r := &runner{options: o, module: m, notes: notes, built: map[string]*binary{}, totals: map[target]uint64{}}
	if err := r.resume(); err != nil {
		return false, err
	}
	printHeader(out, o.cover)
	start := time.Now()
	var findings, unfuzzed []string
	done := 0
	err = r.targets(ctx, targets, func(t target, res *result) {
		done++
		res.print(out, t, o)
		findings = append(findings, res.findings...)
		if res.unfuzzed() {
			unfuzzed = append(unfuzzed, t.String())
		}
	})
	if err != nil {
		return true, err
	}
	fmt.Fprintf(out, "\n%d of %d targets in %s\n", done, len(targets), time.Since(start).Round(time.Second))
	if len(unfuzzed) > 0 {
		fmt.Fprintf(out, "\nfewer than %d inputs beyond the seeds:\n  %s\n", least, strings.Join(unfuzzed, "\n  "))
	}
	if len(findings) > 0 {
		fmt.Fprintf(out, "\n%d findings\n", len(findings))
		for _, f := range findings {
			fmt.Fprintf(out, "\n%s\n", f)
		}
	}
	return len(unfuzzed)+len(findings) > 0, ctx.Err()
}

// outside makes the corpus directory. One within the checkout would be
// committed by mistake, or be taken for seeds.
func outside(dir, root string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	// What is there of the path may lead through links.
	there, rest := dir, ""
	for {
		if _, err := os.Lstat(there); err == nil || there == filepath.Dir(there) {
			break
		}
		there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest)
	}
	real, err := filepath.EvalSymlinks(there)
	if err != nil {
		return "", err
	}
	real = filepath.Join(real, rest)
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(root, real); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is inside of the checkout; name a directory beside it", dir)
	}
	return dir, os.MkdirAll(dir, 0o755)
}
