package clitest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that runs.
type Process struct {
	cmd            *exec.Cmd
	Stdout, Stderr Buffer
	done           chan struct{}
}

// Buffer is a bytes.Buffer that can be read while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Binary makes the test binary run as one of the programs: testscript.Main looks
// at the name by which it is called.
func Binary(t *testing.T, program string) string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	name := filepath.Join(t.TempDir(), program)
	must(t, os.Symlink(exe, name))
	return name
}

// hear takes back that SIGHUP is ignored, as it is under nohup, and SIGINT, as it is
// behind an & in a script. Programs inherit that, and ignore the one, and cannot end by
// the other; a signal with a handler is one that they get.
var hear = sync.OnceFunc(func() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
})

// Start starts a command line; it is killed at the end of the test.
func Start(t *testing.T, stdin io.Reader, name string, args ...string) *Process {
	t.Helper()
	hear()
	p := &Process{cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, &p.Stdout, &p.Stderr
	must(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// Signal sends a signal.
func (p *Process) Signal(t *testing.T, s os.Signal) {
	t.Helper()
	must(t, p.cmd.Process.Signal(s))
}

// patience is how long a test waits for what has to happen.
const patience = 5 * time.Minute

// Wait waits for the end: of a process that a signal has ended, the signal.
func (p *Process) Wait(t *testing.T) (code int, by syscall.Signal) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("the program does not end: %s", p.Stderr.String())
	}
	st := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if st.Signaled() {
		return 128 + int(st.Signal()), st.Signal()
	}
	return st.ExitStatus(), 0
}

// Until waits for a condition, which must come before the program ends.
func (p *Process) Until(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !met() {
		select {
		case <-tick.C:
		case <-p.done:
			if met() {
				return
			}
			t.Fatalf("the program has ended before %s: %s", what, p.Stderr.String())
		case <-end:
			t.Fatalf("no %s: %s", what, p.Stderr.String())
		}
	}
}

// Temporary are the temporary files of a directory, and of those below.
func Temporary(t *testing.T, dir string) (out []string) {
	t.Helper()
	for _, name := range listing(t, dir) {
		if base := filepath.Base(name); strings.HasPrefix(base, ".") {
			out = append(out, name)
		}
	}
	return out
}
