//go:build hostile

package hostile_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/programs"
)

// cost is what a run of a program cost.
type cost struct {
	Status int           // -1 if a signal ended it
	Memory int64         // bytes, the peak of what was resident
	CPU    time.Duration // user and system
	Stderr string        // its end
}

// measureEnv makes the test binary run a program and report its cost. The kernel counts the
// memory of the parent before exec for the child, so the parent has to be small, which this
// test is not.
const measureEnv = "RPCRDMA_MEASURE"

func TestMain(m *testing.M) {
	if os.Getenv(measureEnv) != "" {
		os.Exit(measured(os.Args[1:]))
	}
	flag.Parse()
	code := m.Run()
	if binaries.dir != "" {
		_ = os.RemoveAll(binaries.dir)
	}
	os.Exit(code)
}

// cpuLimit ends a program whose time does not grow linearly.
const cpuLimit = 300 // seconds

func measured(args []string) int {
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: cpuLimit, Max: cpuLimit})
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), measureEnv+"=")
	stderr := &tail{}
	cmd.Stderr = stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	c := cost{
		Status: cmd.ProcessState.ExitCode(), Memory: ru.Maxrss << 10, Stderr: string(stderr.b),
		CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
	}
	if json.NewEncoder(os.Stdout).Encode(c) != nil {
		return 1
	}
	return 0
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if n := len(t.b) - 4096; n > 0 {
		t.b = t.b[:copy(t.b, t.b[n:])]
	}
	return len(b), nil
}

// measure runs a program in a directory, in which it may write.
func measure(t *testing.T, args []string) cost {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), measureEnv+"=1", "GOMEMLIMIT=", "GOGC=", "GODEBUG=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	var c cost
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return c
}

// binaries are the programs, built once.
var binaries struct {
	once sync.Once
	dir  string
	err  error
}

// program is the path of one of the project's programs.
func program(t *testing.T, name string) string {
	t.Helper()
	b := &binaries
	b.once.Do(func() { b.dir, b.err = build() })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return filepath.Join(b.dir, name)
}

// build builds all programs into a directory, which TestMain removes.
func build() (string, error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return "", err
	}
	return dir, programs.Build(dir, "./cmd/rpcrdma-dump", "./cmd/rpcrdma-otlp", "./cmd/rpcrdma-replay", "./cmd/rpcrdma-top")
}
