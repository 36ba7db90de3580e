// Command same builds the programs of another commit beside those of this checkout, runs both on the same captures,
// and compares what they print, write and exit with, byte for byte.
//
//	test/same/run                      against the version that the redesign began with
//	test/same/run HEAD                 what is not committed yet
//	test/same/run -only 'ndjson|-v' X  only cases whose name matches: the command, a space, the file
//
// It reads the captures in samples/ and in the folder that RPCRDMA_CAPTURES names. Intended differences are
// declared in the file differences, with a reason.
//
// Exit status: 0 all is the same, 1 there are differences, or something could not be built or run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// base is the commit that the redesign began with.
const base = "87215e82"

// programs are compared.
var programs = []string{"rpcrdma-dump", "rpcrdma-top", "rpcrdma-replay"}

func main() {
	var o options
	only := flag.String("only", "", "compare only cases whose name, such as \"report-json rocev2-rping.pcap\", matches this `regexp`")
	flag.IntVar(&o.lines, "lines", 3, "show at most this many different `lines` of a case")
	flag.IntVar(&o.cases, "cases", 3, "show the differences of at most this many `cases` of a command, count the others")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "how many cases run at a time")
	flag.Parse()
	o.commit = base
	if flag.NArg() == 1 {
		o.commit = flag.Arg(0)
	}
	var err error
	o.only, err = regexp.Compile(*only)
	if err != nil || flag.NArg() > 1 || o.lines < 1 || o.cases < 1 || o.jobs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = run(ctx, &o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "same:", err)
		os.Exit(1)
	}
}

type options struct {
	commit             string
	only               *regexp.Regexp
	lines, cases, jobs int
}

func run(ctx context.Context, o *options) error {
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	declared, err := readDifferences(filepath.Join(root, "test", "same", "differences"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "same")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	if err := buildCommit(ctx, root, o.commit, filepath.Join(dir, "tree"), before); err != nil {
		return fmt.Errorf("commit %s cannot be built: %w", o.commit, err)
	}
	if err := build(ctx, root, after); err != nil {
		return fmt.Errorf("this checkout cannot be built: %w", err)
	}
	files, err := captures(root)
	if err != nil {
		return err
	}
	fields, err := fieldNames(ctx, before)
	if err != nil {
		return err
	}
	cases := slices.DeleteFunc(allCases(files, fields), func(c *testCase) bool { return !o.only.MatchString(c.name()) })
	if len(cases) == 0 {
		return fmt.Errorf("no case matches %s", o.only)
	}
	report := newReport(o)
	work := make(chan *testCase)
	var group sync.WaitGroup
	for range o.jobs {
		group.Go(func() {
			for c := range work {
				report.add(c, c.compare(ctx, dir, before, after, declared))
			}
		})
	}
	for _, c := range cases {
		work <- c
	}
	close(work)
	group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	report.write(os.Stdout, cases)
	if o.only.String() == "" {
		for _, d := range declared {
			if !d.seen.Load() {
				fmt.Printf("not seen: the difference that line %d of test/same/differences declares\n", d.line)
			}
		}
	}
	if report.different > 0 {
		return fmt.Errorf("%d of %d cases differ from %s", report.different, len(cases), o.commit)
	}
	fmt.Printf("%d cases are as at %s\n", len(cases), o.commit)
	return nil
}

// output is what a command prints, without the last newline.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, exit.Stderr)
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// buildCommit builds the programs of a commit into bin.
func buildCommit(ctx context.Context, root, commit, tree, bin string) (err error) {
	if _, err := output(ctx, root, "git", "worktree", "add", "--quiet", "--detach", tree, commit); err != nil {
		return err
	}
	defer func() {
		// Also when the run has been interrupted: git remembers the tree otherwise.
		_, failed := output(context.WithoutCancel(ctx), root, "git", "worktree", "remove", "--force", tree)
		err = errors.Join(err, failed)
	}()
	return build(ctx, tree, bin)
}

// build builds the programs of a tree into bin. Their versions are not to differ.
func build(ctx context.Context, tree, bin string) error {
	if err := os.Mkdir(bin, 0o777); err != nil {
		return err
	}
	for _, p := range programs {
		if _, err := output(ctx, tree, "go", "build", "-buildvcs=false", "-trimpath", "-o", filepath.Join(bin, p), "./cmd/"+p); err != nil {
			return err
		}
	}
	return nil
}

// captures are the files that the programs read.
func captures(root string) ([]string, error) {
	dirs := []string{filepath.Join(root, "samples"), filepath.Join(root, "samples", "kerberos")}
	if dir := os.Getenv("RPCRDMA_CAPTURES"); dir != "" {
		dirs = append(dirs, dir)
	}
	var files []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*.pcap*"))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no captures", dir)
		}
		files = append(files, found...)
	}
	return files, nil
}

// fieldNames are the fields of -T fields in the programs of a folder.
func fieldNames(ctx context.Context, bin string) ([]string, error) {
	list, err := output(ctx, ".", filepath.Join(bin, "rpcrdma-dump"), "--list-fields")
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 0 {
			names = append(names, f[0])
		}
	}
	return names, nil
}
