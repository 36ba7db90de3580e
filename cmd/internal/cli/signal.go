package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/internal/outfile"
)

// interruptAgain is how long after a signal another one means the same: some
// senders signal the process and its group.
const interruptAgain = 500 * time.Millisecond

// handlers are the commands that end by themselves on a signal; the last one is called.
var handlers struct {
	sync.Mutex
	list []*handler
}

type handler struct {
	stop func(n int) bool
	n    int // signals so far
	last time.Time
}

// Catch readies a program for signals. It belongs at the beginning of main.
//
// SIGINT, SIGTERM and SIGHUP go to the function that OnSignal was given last. If
// there is none, or it does not want the signal, temporary files are removed and
// the signal ends the process as if it had not been caught. SIGHUP stays ignored
// if it was (nohup). A write to a closed pipe, or beyond a limit on the size of
// files, is an error instead of a signal.
func Catch() {
	signal.Ignore(syscall.SIGPIPE)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ignoreFileSize()
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, signals...)
	go func() {
		for sig := range ch {
			if !offer(time.Now()) {
				outfile.Cleanup()
				EndPager()
				die(sig)
			}
		}
	}()
}

// offer gives a signal to the handler in charge and reports whether it takes it.
func offer(now time.Time) bool {
	handlers.Lock()
	defer handlers.Unlock()
	n := len(handlers.list)
	if n == 0 {
		return false
	}
	h := handlers.list[n-1]
	if h.n > 0 && now.Sub(h.last) < interruptAgain {
		return true
	}
	h.n, h.last = h.n+1, now
	return h.stop(h.n)
}

// OnSignal lets a command end by itself: stop is called for the first signal with 1, for the second with 2,
// and so on, and reports whether it does something about it. It must not block. The returned function removes
// it.
func OnSignal(stop func(n int) bool) (done func()) {
	h := &handler{stop: stop}
	handlers.Lock()
	handlers.list = append(handlers.list, h)
	handlers.Unlock()
	return func() {
		handlers.Lock()
		defer handlers.Unlock()
		for i, x := range handlers.list {
			if x == h {
				handlers.list = append(handlers.list[:i], handlers.list[i+1:]...)
				return
			}
		}
	}
}

// Context is done after the first signal; the second one ends the program.
func Context(ctx context.Context) (context.Context, func()) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancel(ctx)
	done := OnSignal(func(n int) bool {
		cancel()
		return n == 1
	})
	return ctx, func() {
		done()
		cancel()
	}
}
