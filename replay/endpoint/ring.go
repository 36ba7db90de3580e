package endpoint

// ring is a queue that grows and keeps its memory.
type ring[T any] struct {
	b    []T // its length is a power of two
	head int
	n    int
}

func (r *ring[T]) len() int  { return r.n }
func (r *ring[T]) front() *T { return &r.b[r.head] }

func (r *ring[T]) at(i int) *T { return &r.b[(r.head+i)&(len(r.b)-1)] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.b) {
		b := make([]T, max(2*len(r.b), 16))
		for i := range r.n {
			b[i] = *r.at(i)
		}
		r.b, r.head = b, 0
	}
	*r.at(r.n) = v
	r.n++
}

func (r *ring[T]) pop() T {
	var zero T
	v := r.b[r.head]
	r.b[r.head] = zero
	r.head = (r.head + 1) & (len(r.b) - 1)
	r.n--
	return v
}
