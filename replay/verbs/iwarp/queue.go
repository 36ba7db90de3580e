package iwarp

import (
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// entry is a request of the send queue. Its slices keep their arrays when it is reused.
type entry struct {
	id       uint64
	op       verbs.Op
	access   verbs.Access
	signaled bool
	fence    bool
	done     bool
	status   verbs.Status
	handle   uint32
	offset   uint64
	length   int
	sge      [][]byte
}

// sendQueue holds requests from Post to their completion. Those before next are under
// way or done. Indices count requests and never wrap.
type sendQueue struct {
	ring             []entry
	depth            int
	head, next, tail uint64
	unpolled         atomic.Int64 // completions that Poll has not taken
}

func (q *sendQueue) init(depth int) {
	q.depth = depth
	n := 1
	for n < depth {
		n *= 2
	}
	q.ring = make([]entry, n)
}

func (q *sendQueue) at(i uint64) *entry { return &q.ring[i&uint64(len(q.ring)-1)] }

func (q *sendQueue) room() int { return q.depth - int(q.tail-q.head) - int(q.unpolled.Load()) }

// recvQueue holds receives that have not been used yet. Only the reading goroutine takes them, without a lock: it reads
// a slot after the tail that says it is filled, and Post fills it again after the count of Poll that says it is free.
type recvQueue struct {
	mu     sync.Mutex // of those who post
	ring   []verbs.RecvRequest
	depth  int
	head   uint64 // of the reading goroutine
	tail   atomic.Uint64
	polled atomic.Uint64 // completions that Poll has taken
	closed bool
}

func (q *recvQueue) init(depth int) {
	q.depth = depth
	n := 1
	for n < depth {
		n *= 2
	}
	q.ring = make([]verbs.RecvRequest, n)
}

func (q *recvQueue) at(i uint64) *verbs.RecvRequest { return &q.ring[i&uint64(len(q.ring)-1)] }

func (q *recvQueue) post(wrs []verbs.RecvRequest) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return verbs.ErrDisconnected
	}
	tail := q.tail.Load()
	if q.depth-int(tail-q.polled.Load()) < len(wrs) {
		return verbs.ErrQueueFull
	}
	for i := range wrs {
		*q.at(tail) = wrs[i]
		tail++
	}
	q.tail.Store(tail)
	return nil
}

// take removes the oldest receive. Its place in the queue is free when Poll has taken its completion.
func (q *recvQueue) take() (r verbs.RecvRequest, ok bool) {
	if q.head == q.tail.Load() {
		return r, false
	}
	slot := q.at(q.head)
	q.head++
	id, b := slot.ID, slot.Buffer
	slot.Buffer = nil
	return verbs.RecvRequest{ID: id, Buffer: b}, true
}

func (q *recvQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

// completionQueue is as large as both queues together, so that it always has
// room.
type completionQueue struct {
	mu      sync.Mutex
	some    sync.Cond
	ring    []verbs.Completion
	head    int
	n       int
	closed  bool
	waiting atomic.Bool // somebody sleeps until there are some; written under mu
}

func (q *completionQueue) init(depth int) {
	q.some.L = &q.mu
	q.ring = make([]verbs.Completion, depth)
}

// push reports whether somebody has waited.
func (q *completionQueue) push(c []verbs.Completion) (waking bool) {
	if len(c) == 0 {
		return false
	}
	q.mu.Lock()
	for i := range c {
		at := q.head + q.n
		if at >= len(q.ring) {
			at -= len(q.ring)
		}
		q.ring[at] = c[i]
		q.n++
	}
	waking = q.waiting.Load()
	q.waiting.Store(false)
	q.mu.Unlock()
	if waking {
		q.some.Broadcast()
	}
	return waking
}

func (q *completionQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.some.Broadcast()
}

func (q *completionQueue) poll(c []verbs.Completion) (n, recvs int) {
	q.mu.Lock()
	for n < len(c) && q.n > 0 {
		c[n] = q.ring[q.head]
		if c[n].Op == verbs.OpRecv {
			recvs++
		}
		if q.head++; q.head == len(q.ring) {
			q.head = 0
		}
		q.n--
		n++
	}
	q.mu.Unlock()
	return n, recvs
}

// wait waits for completions. It reports false when there will be none any more.
func (q *completionQueue) wait() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.n == 0 && !q.closed {
		q.waiting.Store(true)
		q.some.Wait()
	}
	return q.n > 0
}
