package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const role = "RPCRDMA_CREW_TEST"

func TestMain(m *testing.M) {
	if what := os.Getenv(role); what != "" {
		os.Exit(worker(what))
	}
	os.Exit(m.Run())
}

// orders are what a worker of the tests is told.
type orders struct{ Name, Do string }

// worker is a child: it reads its orders, and does what they say.
func worker(what string) int {
	if what != "worker" || len(os.Args) != 3 || os.Args[1] != "be" {
		return 77
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	var o orders
	if err != nil || json.Unmarshal(line, &o) != nil || o.Name == "" {
		return 78
	}
	switch o.Do {
	case "work": // until it is to end
		fmt.Fprintln(os.Stderr, "working")
		_, _ = in.ReadByte()
		return 0
	case "panic":
		fmt.Fprintln(os.Stderr, "before")
		panic("a unit of poison")
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "fail":
		fmt.Fprintln(os.Stderr, "the disk is full")
		return 1
	case "silent":
		return 5
	case "return":
		return 0
	case "long":
		w := bufio.NewWriter(os.Stderr)
		for range 3 << 20 {
			_ = w.WriteByte('x')
		}
		_ = w.Flush()
		return 1
	}
	return 79
}

// told is what a Crew told.
type told struct {
	sync.Mutex
	names  []string
	ended  []string // reasons
	notes  []string
	usages int
	ready  chan struct{} // a worker works
}

// crew is one whose workers do one thing after another; all further ones work until they are to end.
func crew(size int, do ...string) (*Crew, *told) {
	x := &told{ready: make(chan struct{}, 100)}
	started := 0
	return &Crew{
		Size: size, Program: os.Args[0], Args: []string{"be", "a worker"}, Env: []string{role + "=worker"}, first: time.Millisecond, soon: time.Hour,
		Name: func() string {
			x.Lock()
			defer x.Unlock()
			x.names = append(x.names, fmt.Sprint("w", len(x.names)))
			return x.names[len(x.names)-1]
		},
		Orders: func(name string) any {
			x.Lock()
			defer x.Unlock()
			o := orders{name, "work"}
			if started < len(do) {
				o.Do = do[started]
			}
			started++
			return o
		},
		Ended: func(_, reason string) {
			x.Lock()
			defer x.Unlock()
			x.ended = append(x.ended, reason)
		},
		Note: func(format string, args ...any) {
			s := fmt.Sprintf(format, args...)
			x.Lock()
			defer x.Unlock()
			x.notes = append(x.notes, s)
			if s == "working" {
				x.ready <- struct{}{}
			}
		},
		Usage: func(s *os.ProcessState) {
			x.Lock()
			defer x.Unlock()
			if s != nil {
				x.usages++
			}
		},
	}, x
}

// TestCrash: a worker that ends is replaced, under another name, and how it ended is told.
func TestCrash(t *testing.T) {
	for _, x := range []struct{ do, want string }{
		{"panic", "exit status 2: panic: a unit of poison"},
		{"kill", "signal: killed"},
		{"fail", "exit status 1: the disk is full"},
		{"silent", "exit status 5"},
		{"return", ""},
		{"long", "exit status 1: " + strings.Repeat("x", lastWords)},
	} {
		t.Run(x.do, func(t *testing.T) {
			t.Parallel()
			c, told := crew(1, x.do)
			ctx, stop := context.WithCancel(t.Context())
			end := make(chan error, 1)
			go func() { end <- c.Run(ctx) }()
			select {
			case <-told.ready:
			case err := <-end:
				t.Fatal(err)
			}
			stop()
			if err := <-end; err != nil {
				t.Error(err)
			}
			if len(told.names) != 2 || told.names[0] == told.names[1] || told.usages != 2 {
				t.Errorf("%q, %d told of", told.names, told.usages)
			}
			if len(told.ended) != 2 || told.ended[0] != x.want || told.ended[1] != "" {
				t.Errorf("%q, want %q", told.ended, x.want)
			}
			said := strings.Join(told.notes, "\n")
			if !strings.Contains(said, "worker w0 ended: ") || !strings.Contains(said, "another is started") {
				t.Errorf("%q", said)
			}
			for _, n := range told.notes {
				if len(n) > lastWords+200 {
					t.Errorf("a note of %d bytes", len(n))
				}
			}
		})
	}
}

// TestCrew: so many work at a time, and all end when they are to.
func TestCrew(t *testing.T) {
	c, told := crew(3, "kill", "work", "panic")
	ctx, stop := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- c.Run(ctx) }()
	for range 3 {
		select {
		case <-told.ready:
		case err := <-end:
			t.Fatal(err)
		}
	}
	stop()
	if err := <-end; err != nil {
		t.Error(err)
	}
	if len(told.names) != 5 || len(told.ended) != 5 {
		t.Errorf("%q, %q", told.names, told.ended)
	}
}

// TestHopeless checks that the crew gives up on workers that end as soon as they are started, and on a program that
// does not exist.
func TestHopeless(t *testing.T) {
	c, told := crew(1, "silent", "silent", "silent", "silent", "fail", "work")
	err := c.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "5 in a row; the last: exit status 1: the disk is full") || len(told.ended) != maxSoon {
		t.Errorf("%v, %q", err, told.ended)
	}
	// The others are ended, too.
	c, told = crew(2, "work", "silent", "silent", "silent", "silent", "silent")
	if err := c.Run(t.Context()); err == nil || len(told.ended) != maxSoon+1 {
		t.Errorf("%v, %q", err, told.ended)
	}
	c, _ = crew(2)
	c.Program += "-that-is-not-there"
	if err := c.Run(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	c, _ = crew(1)
	c.Orders = func(string) any { return func() {} }
	if err := c.Run(t.Context()); err == nil {
		t.Error("orders that cannot be given")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	c, told = crew(3)
	if err := c.Run(ctx); err != nil || len(told.names) != 0 {
		t.Error(err, told.names)
	}
}
