// Package ring is a first-in first-out queue without an allocation for each entry.
package ring

// Ring is a queue that grows and keeps its memory. The zero value is empty and
// ready for use. It is not safe for use by several goroutines at a time.
type Ring[T any] struct {
	slots []T // its length is a power of two, or zero
	head  int
	n     int
}

// Len is the number of entries.
func (r *Ring[T]) Len() int { return r.n }

// At returns entry i, counted from the oldest. It panics if the Ring has never
// had an entry; i has to be below Len.
func (r *Ring[T]) At(i int) *T { return &r.slots[(r.head+i)&(len(r.slots)-1)] }

// Front returns the oldest entry.
func (r *Ring[T]) Front() *T { return &r.slots[r.head] }

// Push adds an entry.
func (r *Ring[T]) Push(v T) {
	if r.n == len(r.slots) {
		slots := make([]T, max(2*len(r.slots), 16))
		for i := range r.n {
			slots[i] = *r.At(i)
		}
		r.slots, r.head = slots, 0
	}
	*r.At(r.n) = v
	r.n++
}

// Pop removes the oldest entry. There has to be one.
func (r *Ring[T]) Pop() T {
	var zero T
	v := r.slots[r.head]
	r.slots[r.head] = zero // what it points to may be collected
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	return v
}
