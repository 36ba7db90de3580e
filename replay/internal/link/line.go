// Package link models a network between two soft providers: a delay and a
// bandwidth for what one side sends.
package link

import (
	"net"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Line is one direction of a link. It delivers parcels in the order in which they
// were put in: each has a transmission time, which its bytes take at the link's
// bandwidth, and then the link's delay. Its methods may be called from several
// goroutines.
type Line[T any] struct {
	model   verbs.Link
	limit   int
	deliver func(T) error
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when nothing is delivered any more

	mu     sync.Mutex
	change sync.Cond
	queue  []parcel[T]
	head   int       // index in queue of the next parcel
	bytes  int       // in transit
	free   time.Time // when the last parcel has been transmitted
	end    func()    // called after the last parcel; nil until End
	err    error     // why nothing more is taken
}

type parcel[T any] struct {
	due   time.Time
	bytes int
	what  T
}

// New makes a line. Beyond limit bytes in transit, Put waits. An error of deliver
// ends the line, and Put returns it from then on.
func New[T any](model verbs.Link, limit int, deliver func(T) error) *Line[T] {
	l := &Line[T]{model: model, limit: limit, deliver: deliver, stop: make(chan struct{}), done: make(chan struct{})}
	l.change.L = &l.mu
	go l.run()
	return l
}

// Put sends a parcel of the given number of bytes.
func (l *Line[T]) Put(what T, bytes int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.bytes > l.limit && l.err == nil {
		l.change.Wait()
	}
	if l.err != nil {
		return l.err
	}
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	if l.model.Bandwidth > 0 {
		l.free = l.free.Add(time.Duration(float64(bytes) * 8 / float64(l.model.Bandwidth) * float64(time.Second)))
	}
	l.queue = append(l.queue, parcel[T]{l.free.Add(l.model.Delay), bytes, what})
	l.bytes += bytes
	l.change.Broadcast()
	return nil
}

// InTransit is the number of bytes that were put in and not delivered yet.
func (l *Line[T]) InTransit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// End takes no more parcels, and calls f once those in transit were delivered. After
// Close, f is not called.
func (l *Line[T]) End(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.end, l.err = f, net.ErrClosed
		l.change.Broadcast()
	}
}

// Close drops what is in transit.
func (l *Line[T]) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	if l.err == nil {
		l.err = net.ErrClosed
	}
	l.change.Broadcast()
}

// Done is closed when nothing is delivered any more.
func (l *Line[T]) Done() <-chan struct{} { return l.done }

func (l *Line[T]) run() {
	defer close(l.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p, ok := l.next()
		if !ok || !l.wait(p.due, timer) {
			return
		}
		err := l.deliver(p.what)
		l.mu.Lock()
		l.bytes -= p.bytes
		if err != nil && (l.err == nil || l.end != nil) {
			l.err, l.end = err, nil
		}
		l.change.Broadcast()
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// next takes the next parcel out of the queue. It is false at the end.
func (l *Line[T]) next() (p parcel[T], ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.head == len(l.queue) {
		if l.err != nil {
			if l.end != nil && !l.closed() {
				l.end()
			}
			return p, false
		}
		l.change.Wait()
	}
	p = l.queue[l.head]
	l.queue[l.head] = parcel[T]{}
	l.head++
	if l.head > 1024 && l.head*2 > len(l.queue) || l.head == len(l.queue) {
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	return p, true
}

func (l *Line[T]) closed() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// fine is how long before the due time the sleep begins that is exact. Go's timers
// are up to a millisecond late when all else sleeps.
const fine = 2 * time.Millisecond

// wait waits until the time. It is false if the line was closed.
func (l *Line[T]) wait(due time.Time, timer *time.Timer) bool {
	for {
		left := time.Until(due)
		switch {
		case left <= 0:
			return !l.closed()
		case left > fine:
			timer.Reset(left - fine)
			select {
			case <-l.stop:
				return false
			case <-timer.C:
			}
		case l.closed():
			return false
		default:
			nap(left)
		}
	}
}
