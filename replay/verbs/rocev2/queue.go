package rocev2

// queue is a ring that grows. Unlike ring.Ring, it numbers its entries consecutively, and
// entries keep their contents for reuse.
type queue[T any] struct {
	slots      []T // a power of two
	head, tail uint32
}

func (q *queue[T]) len() int { return int(q.tail - q.head) }

func (q *queue[T]) at(i uint32) *T { return &q.slots[i&uint32(len(q.slots)-1)] }

// push returns the place of a new entry at the tail.
func (q *queue[T]) push() *T {
	if q.len() == len(q.slots) {
		slots := make([]T, max(8, 2*len(q.slots)))
		for i := q.head; i != q.tail; i++ {
			slots[i&uint32(len(slots)-1)] = *q.at(i)
		}
		q.slots = slots
	}
	q.tail++
	return q.at(q.tail - 1)
}
