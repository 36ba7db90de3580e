package iwarp

// ring keeps the most recent values of a sequence. A value is named by its position in the sequence, so a
// name is never reused after its value is gone.
type ring[T any] struct {
	buf  []T // length 0 or a power of two
	next uint64
}

// push adds a zero value and returns it with its name. The ring grows, up to
// limit values, only while busy reports that the oldest is still needed.
func (r *ring[T]) push(limit int, busy func(*T) bool) (*T, uint64) {
	n := uint64(len(r.buf))
	if n == 0 {
		r.buf = make([]T, ringStart)
	} else if r.next >= n && int(n) < limit && busy(&r.buf[r.next&(n-1)]) {
		grown := make([]T, 2*n)
		for i := r.next - n; i < r.next; i++ {
			grown[i&(2*n-1)] = r.buf[i&(n-1)]
		}
		r.buf = grown
	}
	seq := r.next
	r.next++
	v := &r.buf[seq&uint64(len(r.buf)-1)]
	var zero T
	*v = zero
	return v, seq
}

// at returns the value of that name, or nil if it is gone.
func (r *ring[T]) at(seq uint64) *T {
	if seq >= r.next || seq < r.oldest() {
		return nil
	}
	return &r.buf[seq&uint64(len(r.buf)-1)]
}

// oldest is the name of the oldest value that is still there.
func (r *ring[T]) oldest() uint64 {
	if n := uint64(len(r.buf)); r.next > n {
		return r.next - n
	}
	return 0
}

const ringStart = 16
