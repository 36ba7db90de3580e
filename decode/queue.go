package decode

// queue is a queue that allocates no memory once it has been as long as it gets.
type queue[T any] struct {
	list []T
	head int
}

func (q *queue[T]) len() int { return len(q.list) - q.head }

// all are the elements, the oldest first.
func (q *queue[T]) all() []T { return q.list[q.head:] }

// first is the oldest element. There must be one, as for take.
func (q *queue[T]) first() T { return q.list[q.head] }

func (q *queue[T]) add(x T) {
	if q.head > 0 && len(q.list) == cap(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, x)
}

func (q *queue[T]) take() T {
	var none T
	x := q.list[q.head]
	q.list[q.head] = none
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return x
}
