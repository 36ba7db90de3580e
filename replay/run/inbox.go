package run

import (
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/callback"
)

// inbox holds what other goroutines have for the engine.
type inbox struct {
	wake chan struct{} // something is there

	mu       sync.Mutex
	done     []*call // that have come back
	recalled []callback.Recall
	asked    []question // that CB_GETATTR asks
	probes   int        // CB_NULLs, and those that have not come in time
	late     bool       // one has not
}

// put leaves a call that has come back.
func (b *inbox) put(c *call) { b.leave(func() { b.done = append(b.done, c) }) }

// recall adds delegations that the server recalls.
func (b *inbox) recall(list []callback.Recall) {
	b.leave(func() { b.recalled = append(b.recalled, list...) })
}

// question asks what the client has in its cache of a file with a delegation.
type question struct {
	handle []byte
	answer chan<- cached
}

type cached struct {
	change, size uint64
	known        bool
}

// maxAnswer is how long the engine may take for an answer: it may wait for the server meanwhile.
const maxAnswer = 5 * time.Second

// cached asks the engine.
func (b *inbox) cached(handle []byte) (change, size uint64, ok bool) {
	answer := make(chan cached, 1)
	b.leave(func() { b.asked = append(b.asked, question{handle, answer}) })
	select {
	case a := <-answer:
		return a.change, a.size, a.known
	case <-time.After(maxAnswer):
		return 0, 0, false
	}
}

// questions takes what was asked.
func (b *inbox) questions() []question {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.asked
	b.asked = nil
	return list
}

// null counts a CB_NULL.
func (b *inbox) null() { b.leave(func() { b.probes++ }) }

// overdue counts the first n CB_NULLs as received, although some are not.
func (b *inbox) overdue(n int) {
	b.leave(func() {
		if b.probes < n {
			b.probes, b.late = n, true
		}
	})
}

func (b *inbox) leave(what func()) {
	b.mu.Lock()
	what()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// rouse lets the engine look whether anything has come.
func (b *inbox) rouse() { b.leave(func() {}) }

// take empties the inbox, except for the CB_NULLs.
func (b *inbox) take() ([]*call, []callback.Recall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	done, recalled := b.done, b.recalled
	b.done, b.recalled = nil, nil
	return done, recalled
}

// probed is how many CB_NULLs have come, and whether one was overdue.
func (b *inbox) probed() (n int, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probes, b.late
}

// pending reports whether take would return anything.
func (b *inbox) pending() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.done) > 0 || len(b.recalled) > 0
}
