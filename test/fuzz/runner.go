package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// runner runs targets.
type runner struct {
	*options
	module *module
	notes  io.Writer
	built  map[string]*binary // by package

	mu     sync.Mutex        // of what follows
	totals map[target]uint64 // executions in all runs
	cover1 sync.Mutex        // coverage is measured of one target at a time
}

// binary is the test binary of a package, once it is done.
type binary struct {
	path string
	left int // targets that need it
	done chan struct{}
	err  error
}

// ahead is how many packages are built before they are needed.
const ahead = 2

// builder builds the test binaries of all packages in the order in which they are needed, one at a time: what is
// built meanwhile leaves the other processors to the targets. Each package takes a place in room.
func (r *runner) builder(ctx context.Context, order []string, room <-chan struct{}) {
	for _, pkg := range order {
		b := r.built[pkg]
		select {
		case <-room:
			b.err = r.module.build(ctx, pkg, b.path, r.module.instrument(pkg)...)
		case <-ctx.Done():
			b.err = ctx.Err()
		}
		close(b.done)
	}
}

// result is the outcome of a target.
type result struct {
	fuzzed   uint64 // executions of made inputs
	total    uint64 // of all runs with this corpus
	cpu      time.Duration
	seeding  time.Duration // given to the seeds
	corpus   int
	fresh    int
	findings []string
	coverage coverage
}

// rate is in executions per second of processor time.
func (r *result) rate() float64 {
	if r.cpu <= 0 {
		return 0
	}
	return float64(r.fuzzed) / r.cpu.Seconds()
}

// maxFindings is the number of findings after which a target ends: one mistake is found in
// many ways.
const maxFindings = 3

// targets runs targets, r.jobs of them side by side, and passes on their results in the order of the list. Packages
// are built meanwhile; that time is not the target's.
func (r *runner) targets(ctx context.Context, list []target, each func(target, *result)) error {
	ctx, stop := context.WithCancel(ctx)
	var order []string
	for _, t := range list {
		b := r.built[t.pkg]
		if b == nil {
			b = &binary{path: filepath.Join(r.work, fmt.Sprintf("fuzz%d.test", len(order))), done: make(chan struct{})}
			r.built[t.pkg] = b
			order = append(order, t.pkg)
		}
		b.left++
	}
	room := make(chan struct{}, len(order)+ahead)
	for range min(r.jobs+ahead, len(order)) {
		room <- struct{}{}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { r.builder(ctx, order, room) })

	type outcome struct {
		res *result
		err error
	}
	outcomes := make([]chan outcome, len(list))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	next := make(chan int, len(list))
	for i := range list {
		next <- i
	}
	close(next)
	for range r.jobs {
		wg.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					outcomes[i] <- outcome{}
					continue
				}
				res, err := r.one(ctx, list[i], room)
				outcomes[i] <- outcome{res, err}
			}
		})
	}
	for i, t := range list {
		o := <-outcomes[i]
		if o.err != nil {
			return fmt.Errorf("%s: %w", t, o.err)
		}
		if o.res == nil { // interrupted
			break
		}
		each(t, o.res)
		if err := r.save(); err != nil {
			return err
		}
	}
	return nil
}

// one runs a target once its package is built, and removes what was built with the last one of a package.
func (r *runner) one(ctx context.Context, t target, room chan<- struct{}) (*result, error) {
	b := r.built[t.pkg]
	<-b.done
	switch {
	case ctx.Err() != nil:
		return nil, nil //nolint:nilnil // interrupted: there is no result
	case b.err != nil:
		return nil, b.err
	}
	res, err := r.target(ctx, t)
	if r.corpus == "" { // then nobody needs it any more
		_ = os.RemoveAll(filepath.Join(r.fast, filepath.FromSlash(t.pkg), t.name))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.left--; b.left == 0 {
		_ = os.Remove(b.path)
		room <- struct{}{}
	}
	return res, err
}

// target runs a target for the time that is asked for, again if it found
// something before that.
func (r *runner) target(ctx context.Context, t target) (*result, error) {
	corpus := r.fast
	if r.corpus != "" {
		corpus = filepath.Join(r.corpus, "corpus")
	}
	corpus = filepath.Join(corpus, filepath.FromSlash(t.pkg))
	res := new(result)
	if err := r.spend(ctx, t, corpus, res); err != nil {
		return nil, err
	}
	if err := r.recheck(ctx, t, corpus, res); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.totals[t] += res.fuzzed
	res.total = r.totals[t]
	r.mu.Unlock()
	if r.cover {
		r.cover1.Lock()
		defer r.cover1.Unlock()
		var err error
		if res.coverage, err = r.module.cover(ctx, t, filepath.Join(corpus, t.name), r.work); err != nil {
			fmt.Fprintf(r.notes, "fuzz: %s: coverage: %v\n", t, err)
		}
	}
	return res, nil
}

// spend runs a target until its time is over, or it has found enough.
func (r *runner) spend(ctx context.Context, t target, corpus string, res *result) error {
	for left := r.time; left > 0 && ctx.Err() == nil; {
		p, err := r.run(ctx, t, corpus, left, res)
		if err != nil {
			return err
		}
		left -= max(p.elapsed-p.seeding, time.Second)
		switch {
		case p.failing != "":
			if r.corpus == "" || len(res.findings) == maxFindings || !p.fuzzing {
				return nil
			}
		case left > r.time/2 && p.deadline:
		default:
			return nil
		}
	}
	return nil
}

// least is how many made inputs a target must have been given, however long that takes within patience runs.
const (
	least    = 100
	patience = 8 // the last of them 256 times as long as the first
)

// unfuzzed reports whether a target was given hardly more than its seeds.
func (r *result) unfuzzed() bool { return r.fuzzed < least }

// recheck runs a target that was given too few inputs again, each time twice as long: a short run on a busy machine may
// have seen little but the start.
func (r *runner) recheck(ctx context.Context, t target, corpus string, res *result) error {
	for d := r.time; d < r.time<<patience && len(res.findings) == 0 && res.unfuzzed() && res.seeding < maxSeeding && ctx.Err() == nil; {
		d *= 2
		if _, err := r.run(ctx, t, corpus, d, res); err != nil {
			return err
		}
	}
	return nil
}

// maxSeeding is the longest that is waited for the seeds of a target.
const maxSeeding = 4 * time.Minute

// run fuzzes for a time, and adds what came of it. The engine counts the time
// that the seeds take as time of fuzzing. A target with many of them, on a slow
// machine, would never come to the end of them: then it is run again, with twice
// as much time for them.
func (r *runner) run(ctx context.Context, t target, corpus string, d time.Duration, res *result) (*progress, error) {
	var p *progress
	for {
		var cpu time.Duration
		var err error
		if p, cpu, err = r.once(ctx, t, corpus, d+res.seeding); err != nil {
			return nil, err
		}
		res.add(p, cpu)
		if p.fuzzing {
			res.seeding = max(res.seeding, p.seeding)
		}
		if p.fuzzed() > 0 || p.failing != "" || res.seeding >= maxSeeding || ctx.Err() != nil {
			break
		}
		res.seeding = max(2*res.seeding, time.Second)
	}
	if p.failing != "" {
		text, err := r.finding(t, p)
		if err != nil {
			return nil, err
		}
		res.findings = append(res.findings, text)
	}
	return p, nil
}

func (r *result) add(p *progress, cpu time.Duration) {
	r.fuzzed += p.fuzzed()
	r.cpu += cpu
	r.fresh += p.interesting
	r.corpus = max(p.total, int(p.seeds))
}

// once runs the engine. cpu is the processor time since the seeds were run.
func (r *runner) once(ctx context.Context, t target, corpus string, d time.Duration) (*progress, time.Duration, error) {
	args := []string{
		"-test.run=^$", "-test.fuzz=^" + t.name + "$", "-test.fuzztime=" + d.String(),
		"-test.fuzzminimizetime=0x", "-test.parallel=1", "-test.fuzzcachedir=" + corpus,
	}
	name := r.built[t.pkg].path
	if r.nice {
		args = append([]string{"-n", "19", name}, args...)
		name = "nice"
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.module.dir(t)
	// What a worker that is killed leaves behind goes with all else.
	tmp := filepath.Join(r.work, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return nil, 0, err
	}
	cmd.Env = append(cmd.Environ(), "TMPDIR="+tmp)
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(cmd.Env, "GOGC=400") // inputs are small, and so is what lives
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	read, write, err := os.Pipe()
	if err != nil {
		return nil, 0, err
	}
	defer read.Close()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		write.Close()
		return nil, 0, err
	}
	write.Close()
	p := new(progress)
	var before time.Duration
	start := time.Now()
	scanned := p.scan(read, func() { p.seeding, before = time.Since(start), familyTime(cmd.Process.Pid) })
	err = cmd.Wait()
	if scanned != nil {
		return nil, 0, scanned
	}
	if p.blind {
		return nil, 0, errors.New("the test binary does not count what it reaches")
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, 0, err
	}
	if err != nil && p.failing == "" && !p.deadline && ctx.Err() == nil {
		// It failed without an input to show: a seed, or the target itself.
		p.failing = "-"
	}
	if !p.fuzzing {
		return p, 0, nil
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() - before
	return p, max(cpu, 0), nil
}

// finding says how to reproduce what was found. With a corpus directory, the
// input is moved there, so that the checkout stays as it was and the target
// can go on.
func (r *runner) finding(t target, p *progress) (string, error) {
	text := strings.Join(p.text, "\n")
	if p.failing == "-" {
		return fmt.Sprintf("%s fails\n%s\n  go test -run '^%s$' ./%s", t, text, t.name, t.pkg), nil
	}
	from := filepath.Join(r.module.dir(t), filepath.FromSlash(p.failing))
	name := filepath.Base(from)
	if !p.fuzzing { // a seed that is there already
		return fmt.Sprintf("%s fails on its seeds\n%s\n  go test -run '^%s$' ./%s", t, text, t.name, t.pkg), nil
	}
	where := filepath.Join(filepath.FromSlash(t.pkg), "testdata", "fuzz", t.name)
	if r.corpus == "" {
		return fmt.Sprintf("%s\n%s\n  go test -run '^%s$/^%s$' ./%s", t, text, t.name, name, t.pkg), nil
	}
	kept := filepath.Join(r.corpus, "findings", filepath.FromSlash(t.pkg), t.name, name)
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return "", err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(kept, b, 0o644); err != nil {
		return "", err
	}
	if err := os.Remove(from); err != nil {
		return "", err
	}
	_ = os.Remove(filepath.Dir(from)) // if it was the first of this target
	return fmt.Sprintf("%s\n%s\n  mkdir -p %s && cp %s %s/ && go test -run '^%s$/^%s$' ./%s",
		t, text, where, kept, where, t.name, name, t.pkg), nil
}

// resume reads how often the targets were executed in earlier runs.
func (r *runner) resume() error {
	if r.corpus == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(r.corpus, "executions.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	counts := map[string]uint64{}
	if err := json.Unmarshal(b, &counts); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(r.corpus, "executions.json"), err)
	}
	for _, t := range r.module.targets {
		r.totals[t] = counts[t.String()]
	}
	return nil
}

// save keeps the counts beside the corpus.
func (r *runner) save() error {
	if r.corpus == "" {
		return nil
	}
	counts := map[string]uint64{}
	r.mu.Lock()
	for t, n := range r.totals {
		if n > 0 {
			counts[t.String()] = n
		}
	}
	r.mu.Unlock()
	b, err := json.MarshalIndent(counts, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(r.corpus, "executions.json")
	if err := os.WriteFile(name+".new", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// familyTime is the processor time that a process and its children have taken;
// 0 where /proc cannot tell.
func familyTime(pid int) time.Duration {
	procs, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	var ticks uint64
	for _, name := range procs {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// The name of the program, in brackets, may hold anything.
		s := string(b)
		s = s[strings.LastIndexByte(s, ')')+1:]
		var state string
		var parent, group, session, tty, tpgid, flags, minor, cminor, major, cmajor, user, system uint64
		if _, err := fmt.Sscan(strings.ReplaceAll(s, "-1", "0"), &state, &parent, &group, &session, &tty, &tpgid, &flags, &minor, &cminor, &major, &cmajor, &user, &system); err != nil {
			continue
		}
		if int(parent) == pid || name == fmt.Sprintf("/proc/%d/stat", pid) {
			ticks += user + system
		}
	}
	const hertz = 100 // USER_HZ, on all of Linux
	return time.Duration(ticks) * time.Second / hertz
}
