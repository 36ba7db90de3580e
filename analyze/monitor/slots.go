package monitor

// Slot is what happened in one interval.
type Slot struct {
	Start    int64 // ns since 1970
	Count    uint64
	Errors   uint64
	Bytes    uint64 // of RPC messages
	Data     uint64 // moved by RDMA Reads and Writes
	Time     int64  // sum of latencies, ns
	P50, P99 int64
	Max      int64
	Open     int // unanswered calls at its end
	Stuck    int
	Parts    Times
	Heat     Heat
}

// ring keeps the latest intervals.
type ring struct {
	slots []Slot
	n     int // slots in use
	next  int
}

// push makes room for an interval.
func (r *ring) push() *Slot {
	p := &r.slots[r.next]
	r.next = (r.next + 1) % len(r.slots)
	r.n = min(r.n+1, len(r.slots))
	return p
}

// last is the place of the latest interval.
func (r *ring) last() int { return (r.next + len(r.slots) - 1) % len(r.slots) }

// index is the place of the i-th interval, the oldest first.
func (r *ring) index(i int) int { return (r.next + len(r.slots) - r.n + i) % len(r.slots) }

func (r *ring) list() []Slot {
	out := make([]Slot, r.n)
	for i := range out {
		out[i] = r.slots[r.index(i)]
	}
	return out
}

func (r *ring) points(all []Point) []Point {
	out := make([]Point, r.n)
	for i := range out {
		out[i] = all[r.index(i)]
	}
	return out
}
