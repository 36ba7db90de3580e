// Package crew keeps workers running: each is a process of its own, so that one that crashes, or is killed for its
// memory, takes no other with it.
package crew

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Crew are child processes.
type Crew struct {
	Size    int
	Program string   // the executable
	Args    []string // that make it a worker, which reads its orders from standard input
	Env     []string // besides that of this process
	// Orders are what a new worker is told, as JSON.
	Orders func(name string) any
	// Name makes the name of a new worker.
	Name func() string
	// Ended is called when a worker has ended, with how it crashed, "" if it ended by itself.
	Ended func(name, reason string)
	Note  func(format string, args ...any)
	// Usage, if set, is told of each process that ended.
	Usage func(*os.ProcessState)

	first, soon time.Duration // of tests, in place of the constants
}

// Limits of starting again: a worker that cannot even start is not started forever.
const (
	firstWait = 200 * time.Millisecond
	maxWait   = 5 * time.Second
	soon      = 2 * time.Second // a worker that ended earlier has not worked
	maxSoon   = 5               // this many in a row are enough
	grace     = 30 * time.Second
	lastWords = 4 << 10
	longLine  = 64 << 10
)

// Run keeps Size workers running until the context ends, and then until they have given back their units. It returns
// an error if workers end as soon as they are started.
func (c *Crew) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for range c.Size {
		wg.Go(func() {
			if err := c.keep(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// keep starts a worker again and again.
func (c *Crew) keep(ctx context.Context) error {
	first, soon := cmp.Or(c.first, firstWait), cmp.Or(c.soon, soon)
	wait, quick := first, 0
	for ctx.Err() == nil {
		start := time.Now()
		name := c.Name()
		reason, err := c.one(ctx, name)
		if err != nil {
			return err
		}
		c.Ended(name, reason)
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		c.Note("worker %s ended: %s; another is started", name, orWord(reason, "it stopped"))
		if time.Since(start) > soon {
			wait, quick = first, 0
		} else if quick++; quick >= maxSoon {
			return fmt.Errorf("workers end as soon as they are started, %d in a row; the last: %s", quick, orWord(reason, "it stopped"))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, maxWait)
	}
	return nil
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// one starts a worker and waits for its end. The reason is empty if it ended as it should. The worker ends when its
// standard input does: with this process, however that ends.
func (c *Crew) one(ctx context.Context, name string) (reason string, err error) {
	orders, err := json.Marshal(c.Orders(name))
	if err != nil {
		return "", err
	}
	cmd := exec.Command(c.Program, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	go func() { _, _ = in.Write(append(orders, '\n')) }() // one that ends early does not read it
	stop := context.AfterFunc(ctx, func() { in.Close() })
	defer stop()
	killed := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { _ = cmd.Process.Kill() })
	})
	defer killed()
	last := c.relay(said)
	err = cmd.Wait()
	in.Close()
	if c.Usage != nil {
		c.Usage(cmd.ProcessState)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return err.Error(), nil
	case last != "":
		return exit.Error() + ": " + last, nil
	}
	return exit.Error(), nil
}

// relay passes on what a worker says, and returns the line that says why it ended: a panic, or the last one.
func (c *Crew) relay(r io.Reader) (last string) {
	s := bufio.NewReaderSize(r, longLine)
	panicked := ""
	for {
		b, more, err := s.ReadLine()
		if line := strings.TrimSpace(string(b)); line != "" {
			if len(line) > lastWords {
				line = line[:lastWords]
			}
			if panicked == "" {
				if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
					panicked = line
				}
				c.Note("%s", line)
			}
			last = line
		}
		if err != nil {
			if panicked != "" {
				return panicked
			}
			return last
		}
		for more && err == nil {
			_, more, err = s.ReadLine()
		}
	}
}
