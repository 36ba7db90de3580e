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

// recvQueue holds receives that have not been used yet.
type recvQueue struct {
	mu         sync.Mutex
	ring       []verbs.RecvRequest
	depth      int
	head, tail uint64
	closed     bool
	unpolled   atomic.Int64
}

func (q *recvQueue) init(depth int) {
	q.depth = depth
	n := 1
	for n < depth {
		n *= 2
	}
	q.ring = make([]verbs.RecvRequest, n)
}

func (q *recvQueue) post(wrs []verbs.RecvRequest) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return verbs.ErrDisconnected
	}
	if q.depth-int(q.tail-q.head)-int(q.unpolled.Load()) < len(wrs) {
		return verbs.ErrQueueFull
	}
	for i := range wrs {
		q.ring[q.tail&uint64(len(q.ring)-1)] = wrs[i]
		q.tail++
	}
	return nil
}

// take removes the oldest receive, which counts as unpolled from here on.
func (q *recvQueue) take() (r verbs.RecvRequest, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == q.tail {
		return r, false
	}
	slot := &q.ring[q.head&uint64(len(q.ring)-1)]
	r = *slot
	slot.Buffer = nil
	q.head++
	q.unpolled.Add(1)
	return r, true
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
	waiting int
	closed  bool
}

func (q *completionQueue) init(depth int) {
	q.some.L = &q.mu
	q.ring = make([]verbs.Completion, depth)
}

func (q *completionQueue) push(c []verbs.Completion) {
	if len(c) == 0 {
		return
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
	wake := q.waiting > 0
	q.mu.Unlock()
	if wake {
		q.some.Broadcast()
	}
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
		q.waiting++
		q.some.Wait()
		q.waiting--
	}
	return q.n > 0
}
