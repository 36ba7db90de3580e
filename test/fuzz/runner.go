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
	"time"
)

// runner runs targets.
type runner struct {
	*options
	module *module
	notes  io.Writer
	built  map[string]*binary // by package
	totals map[target]uint64  // executions in all runs
}

// binary is the test binary of a package, once it is done.
type binary struct {
	path string
	done chan struct{}
	err  error
}

// build begins to build the test binary of a package, unless that has been done.
func (r *runner) build(ctx context.Context, pkg string) *binary {
	b := r.built[pkg]
	if b != nil {
		return b
	}
	b = &binary{path: filepath.Join(r.work, fmt.Sprintf("fuzz%d.test", len(r.built))), done: make(chan struct{})}
	r.built[pkg] = b
	go func() {
		defer close(b.done)
		b.err = r.module.build(ctx, pkg, b.path, r.module.instrument()...)
	}()
	return b
}

// wait waits for what is being built.
func (r *runner) wait() {
	for _, b := range r.built {
		<-b.done
	}
}

// result is the outcome of a target.
type result struct {
	fuzzed   uint64 // executions of made inputs
	total    uint64 // of all runs with this corpus
	cpu      time.Duration
	elapsed  time.Duration
	corpus   int
	fresh    int
	slow     bool
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

// targets runs targets one after the other. The next package is built meanwhile;
// that time is not the target's.
func (r *runner) targets(ctx context.Context, list []target, each func(target, *result)) error {
	ctx, stop := context.WithCancel(ctx)
	defer r.wait()
	defer stop()
	for i, t := range list {
		b := r.build(ctx, t.pkg)
		<-b.done
		if b.err != nil {
			return b.err
		}
		last := true
		for _, next := range list[i+1:] {
			if next.pkg != t.pkg {
				r.build(ctx, next.pkg)
				break
			}
			last = false
		}
		res, err := r.target(ctx, t)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		each(t, res)
		if err := r.save(); err != nil {
			return err
		}
		if last {
			_ = os.Remove(b.path)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil
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
	r.totals[t] += res.fuzzed
	res.total = r.totals[t]
	if r.cover {
		var err error
		if res.coverage, err = r.module.cover(ctx, t, filepath.Join(corpus, t.name), r.work); err != nil {
			fmt.Fprintf(r.notes, "fuzz: %s: coverage: %v\n", t, err)
		}
	}
	return res, nil
}

// spend runs a target until its time is over, or it has found enough.
func (r *runner) spend(ctx context.Context, t target, corpus string, res *result) error {
	longer := false
	for left := r.time; left > 0 && ctx.Err() == nil; {
		p, err := r.run(ctx, t, corpus, left, res)
		if err != nil {
			return err
		}
		left -= max(p.elapsed, time.Second)
		switch {
		case p.failing != "":
			if r.corpus == "" || len(res.findings) == maxFindings || !p.fuzzing {
				return nil
			}
		case left > r.time/2 && p.deadline:
		case res.fuzzed == 0 && !longer: // the corpus took all of the time
			left, longer = 4*r.time, true
		default:
			return nil
		}
	}
	return nil
}

// recheck runs a target again that was executed too rarely: a short run on a
// busy machine may have seen little but the start.
func (r *runner) recheck(ctx context.Context, t target, corpus string, res *result) error {
	for again := 0; r.floor > 0 && len(res.findings) == 0 && r.below(res) && ctx.Err() == nil; again++ {
		if again == 3 {
			res.slow = true
			return nil
		}
		if again == 0 && res.cpu >= enough {
			again = 2 // it has had its time
			*res = result{}
		}
		if _, err := r.run(ctx, t, corpus, 4*r.time, res); err != nil {
			return err
		}
	}
	return nil
}

// run runs the engine once, and adds what came of it.
func (r *runner) run(ctx context.Context, t target, corpus string, d time.Duration, res *result) (*progress, error) {
	p, cpu, err := r.once(ctx, t, corpus, d)
	if err != nil {
		return nil, err
	}
	res.add(p, cpu)
	if p.failing != "" {
		text, err := r.finding(t, p)
		if err != nil {
			return nil, err
		}
		res.findings = append(res.findings, text)
	}
	return p, nil
}

// enough is the least processor time from which the rate of a target can be judged.
const enough = 250 * time.Millisecond

// below reports whether a target is executed too rarely. One that has had hardly
// any processor time may have waited for it, or for something else: then the
// time on the clock decides.
func (r *runner) below(res *result) bool {
	if res.cpu >= enough {
		return res.rate() < r.floor
	}
	return float64(res.fuzzed) < r.floor*res.elapsed.Seconds()
}

func (r *result) add(p *progress, cpu time.Duration) {
	r.fuzzed += p.fuzzed()
	r.cpu += cpu
	r.elapsed += p.elapsed
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
	scanned := p.scan(read, func() { before = familyTime(cmd.Process.Pid) })
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
	for t, n := range r.totals {
		if n > 0 {
			counts[t.String()] = n
		}
	}
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
