package tcp

import (
	"math/bits"
	"time"
)

// Options bounds what streams may buffer. A zero field selects the default.
type Options struct {
	Buffer   int           // bytes of memory after gaps of one stream; default 512 KiB
	Segments int           // pieces of segments after gaps of one stream; default 1024, at most 65536
	Total    int           // bytes of memory after gaps of all streams of a Pool; default 16 MiB
	Wait     time.Duration // how long a gap may last, in packet time, if the capture has no acknowledgments; default 10 s
}

// Pool holds the memory of streams while they need it, and keeps it for the next one. It is not safe for
// concurrent use: each goroutine has its own.
type Pool struct {
	options Options
	used    int // bytes that streams have
	idle    int // bytes in free
	free    [maxClass + 1][][]byte
	queues  []*queue

	idleQueues int // bytes in queues
}

const (
	minSize = 512 // of class 0
	maxSize = 1 << 20
	// maxClass is the class of maxSize: each class is twice the size of the previous one.
	maxClass = 11
	// maxIdle bounds the memory that is kept for later.
	maxIdle       = 4 << 20
	maxIdleQueues = 32
)

// NewPool makes a Pool.
func NewPool(o Options) *Pool {
	if o.Buffer <= 0 {
		o.Buffer = 512 << 10
	}
	if o.Segments <= 0 {
		o.Segments = 1024
	}
	o.Segments = min(o.Segments, maxPieces)
	if o.Total <= 0 {
		o.Total = 16 << 20
	}
	if o.Wait <= 0 {
		o.Wait = 10 * time.Second
	}
	return &Pool{options: o}
}

// Used is the number of bytes that streams hold.
func (p *Pool) Used() int { return p.used }

// class is the smallest class for n bytes, which are at most maxSize.
func class(n int) int {
	if n <= minSize {
		return 0
	}
	return bits.Len(uint(n-1)) - 9
}

// size is the capacity that get gives for n bytes.
func (p *Pool) size(n int) int {
	if n == 0 || n > maxSize {
		return n
	}
	return minSize << class(n)
}

// get returns n bytes.
func (p *Pool) get(n int) []byte {
	if n == 0 {
		return nil
	}
	size := p.size(n)
	p.used += size
	if n <= maxSize {
		c := class(n)
		if k := len(p.free[c]); k > 0 {
			b := p.free[c][k-1]
			p.free[c][k-1] = nil
			p.free[c] = p.free[c][:k-1]
			p.idle -= size
			return b[:n]
		}
	}
	return make([]byte, n, size)
}

// put takes back what get has returned.
func (p *Pool) put(b []byte) {
	size := cap(b)
	if size == 0 {
		return
	}
	p.used -= size
	if size <= maxSize && p.idle+size <= maxIdle {
		c := class(size)
		p.free[c] = append(p.free[c], b)
		p.idle += size
	}
}

func (p *Pool) getQueue() *queue {
	if n := len(p.queues); n > 0 {
		q := p.queues[n-1]
		p.queues = p.queues[:n-1]
		p.idleQueues -= q.owned()
		return q
	}
	return new(queue)
}

// putQueue takes back an empty queue.
func (p *Pool) putQueue(q *queue) {
	if len(p.queues) < maxIdleQueues {
		*q = queue{slots: q.slots[:0], free: q.free[:0], order: q.order[:0]}
		p.queues = append(p.queues, q)
		p.idleQueues += q.owned()
	}
}
