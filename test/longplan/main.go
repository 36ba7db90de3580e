// Command longplan measures what a long plan costs: memory and processor time of rpcrdma-replay's
// preview, up to the first call, and of the replay against the built-in server. The plan is made up
// (internal/testtools/longplan). Each measurement is a process of its own, whose figures come from getrusage.
//
//	go run ./test/longplan -calls 10000000     # the table of docs/design/0031-plans.md
//
// The exit status is 1 if a process had more than -memory MiB resident, or needed more than -first of
// processor time up to its first call, or if a call was not answered as expected.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/longplan"
	"github.com/rpcrdma/toolkit/replay/plan"
)

var (
	calls    = flag.Int("calls", 1000000, "calls of the plan")
	files    = flag.Int("files", 1000, "files that they are about")
	fabric   = flag.String("provider", "tcp", "fabric of the replay")
	memory   = flag.Int("memory", 512, "MiB that a process may have resident")
	first    = flag.Duration("first", 5*time.Second, "processor time up to the first call")
	keep     = flag.String("plan", "", "keep the plan in this file, and use it if it is there")
	previews = flag.Bool("preview", true, "measure the preview")
	limit    = flag.String("limit-memory", "", "--limit-memory of rpcrdma-replay")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "longplan:", err)
		stop()
		os.Exit(1)
	}
}

func measure(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "longplan")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "rpcrdma-replay")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/rpcrdma-replay")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	name := *keep
	if name == "" {
		name = filepath.Join(dir, "plan.zst")
	}
	if _, err := os.Stat(name); err != nil {
		if err := makePlan(name); err != nil {
			return err
		}
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	fmt.Printf("%d calls, %.1f MB in the file\n", *calls, float64(info.Size())/1e6)
	run := []string{"run", name, "builtin", "--write", "--timing", "fast", "--provider", *fabric, "--quiet"}
	if *limit != "" {
		run = append(run, "--limit-memory", *limit)
	}
	rows := []row{{"first call", append(run, "--yes", "--verify-files=false", "--max-ops", "1"), *first, 1}}
	if *previews {
		rows = append(rows, row{"preview", run, 0, 0})
	}
	rows = append(rows, row{"replay", append(run, "--yes"), 0, 0})
	bad := 0
	for _, r := range rows {
		ok, err := r.measure(ctx, program)
		if err != nil {
			return err
		}
		if !ok {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d are not as they should be", bad, len(rows))
	}
	return nil
}

func makePlan(name string) error {
	began := time.Now()
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w, err := plan.NewFileWriter(f, name)
	if err != nil {
		return err
	}
	if err := longplan.Write(w, longplan.Options{Calls: *calls, Files: *files}); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	fmt.Printf("the plan was made in %s\n", time.Since(began).Round(time.Millisecond))
	return nil
}

// row is a measurement.
type row struct {
	title  string
	args   []string
	limit  time.Duration // of processor time; 0: any
	status int           // expected exit status
}

func (r row) measure(ctx context.Context, program string) (bool, error) {
	out, err := os.CreateTemp("", "longplan-*.txt")
	if err != nil {
		return false, err
	}
	defer func() {
		_ = out.Close()
		_ = os.Remove(out.Name())
	}()
	c := exec.CommandContext(ctx, program, r.args...)
	c.Stdout, c.Stderr = out, out
	began := time.Now()
	_ = c.Run()
	took := time.Since(began)
	if c.ProcessState == nil {
		return false, fmt.Errorf("%s did not run", program)
	}
	used := c.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	resident := used.Maxrss >> 10 // KiB, getrusage(2)
	status := c.ProcessState.ExitCode()
	fmt.Printf("%-10s  processor %9s  wall %9s  resident %5d MiB  status %d\n", r.title, cpu.Round(10*time.Millisecond), took.Round(10*time.Millisecond), resident, status)
	ok := status == r.status && resident <= int64(*memory) && (r.limit == 0 || cpu <= r.limit)
	if !ok || r.title == "replay" {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			return false, err
		}
		fmt.Println(string(text[:min(len(text), 4000)]))
	}
	if status != r.status {
		fmt.Println("the exit status should be " + strconv.Itoa(r.status))
	}
	return ok, nil
}
