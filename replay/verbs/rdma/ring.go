//go:build verbs && cgo && linux

package rdma

import "sync/atomic"

// ring holds the requests of a queue from posting to completion, in order. One goroutine
// at a time adds and one removes, concurrently; ring.Ring does not support that.
type ring[T any] struct {
	entries    []T
	limit      uint32        // entries that users may have in it
	head, tail atomic.Uint32 // numbers of the oldest and of the next; they count on over the end
}

func newRing[T any](n int) ring[T] {
	size := 1
	for size < n {
		size *= 2
	}
	return ring[T]{entries: make([]T, size), limit: uint32(n)}
}

func (r *ring[T]) at(n uint32) *T { return &r.entries[n&uint32(len(r.entries)-1)] }
func (r *ring[T]) room() int      { return int(r.limit) - int(r.tail.Load()-r.head.Load()) }
func (r *ring[T]) empty() bool    { return r.tail.Load() == r.head.Load() }
