package main

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/table"
)

// output buffers standard output. begin hands out the buffer to append to, end takes it back.
type output struct {
	w    io.Writer
	fit  *table.Fit // w, if lines are wrapped
	mu   sync.Mutex
	buf  []byte
	err  error
	line bool // write each line at once
	most int  // bytes that may wait without anybody looking; 0 after an error, with line, and if there is a goroutine
	stop chan struct{}
	done sync.WaitGroup
}

const (
	flushAt    = 32 << 10
	flushEvery = 200 * time.Millisecond
)

// newOutput makes an output. With live set, the buffer is written after a while even if it is not full, since
// a live capture is being watched.
func newOutput(s *cli.Streams, live, line bool) *output {
	o := &output{w: s.Out, line: line, buf: make([]byte, 0, flushAt+16<<10)}
	if s.Columns > 0 {
		o.fit = table.NewFit(s.Out, s.Columns)
		o.w = o.fit
	}
	if live && !line {
		o.stop = make(chan struct{})
		o.done.Add(1)
		go o.tick()
	}
	if o.stop == nil && !line {
		o.most = flushAt
	}
	return o
}

func (o *output) tick() {
	defer o.done.Done()
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			o.mu.Lock()
			o.flush()
			o.mu.Unlock()
		case <-o.stop:
			return
		}
	}
}

// begin and end take a lock only if there is a goroutine that writes after a while. Everything else takes turns.
func (o *output) begin() []byte {
	if o.stop != nil {
		return o.locked()
	}
	return o.buf
}

//go:noinline
func (o *output) locked() []byte {
	o.mu.Lock()
	return o.buf
}

// end takes the buffer back and reports whether the output still works.
func (o *output) end(b []byte) bool {
	o.buf = b
	if len(b) < o.most {
		return true
	}
	return o.full()
}

// full writes the buffer if it is time to, and gives the lock back.
func (o *output) full() bool {
	if len(o.buf) >= flushAt || o.line {
		o.flush()
	}
	ok := o.err == nil
	if o.stop != nil {
		o.mu.Unlock()
	}
	return ok
}

func (o *output) flush() {
	if len(o.buf) > 0 && o.err == nil {
		_, err := o.w.Write(o.buf)
		if o.err = closed(err); o.err != nil {
			o.most = 0
		}
	}
	o.buf = o.buf[:0]
}

// Write implements io.Writer, for what is written at the end.
func (o *output) Write(p []byte) (int, error) {
	b := append(o.begin(), p...)
	if !o.end(b) {
		return 0, o.err
	}
	return len(p), nil
}

// close writes what is left and returns the first error.
func (o *output) close() error {
	if o.stop != nil {
		close(o.stop)
		o.done.Wait()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	if o.fit != nil && o.err == nil {
		o.err = closed(o.fit.Flush())
	}
	return o.err
}

// Columns implements table.Columns.
func (o *output) Columns() int {
	if o.fit == nil {
		return 0
	}
	return o.fit.Columns()
}

// closed converts the error of a pipe without a reader to cli.ErrClosed.
func closed(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return cli.ErrClosed
	}
	return err
}
