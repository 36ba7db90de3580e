package simulate

import (
	"container/heap"
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// engine is the clock: what happens, in the order of virtual time.
type engine struct {
	seed   uint64
	now    int64
	seq    int
	events events
}

type event struct {
	at  int64
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// after does something d nanoseconds from now.
func (e *engine) after(d int64, do func()) { e.at(e.now+d, do) }

// at does something at a time.
func (e *engine) at(t int64, do func()) {
	e.seq++
	heap.Push(&e.events, event{max(t, e.now), e.seq, do})
}

// maxEvents ends a simulation that does not come to an end.
const maxEvents = 50_000_000

// run does what is to be done, until nothing is left.
func (e *engine) run() {
	for i := 0; len(e.events) > 0; i++ {
		if i == maxEvents {
			panic("simulate: the traffic does not end")
		}
		next := heap.Pop(&e.events).(event)
		e.now = next.at
		next.do()
	}
}

// stream gives the random numbers of one purpose of one thing. Each has a stream of its own, so that switching
// off a cause leaves all other draws as they were.
func stream(seed uint64, purpose string, index uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed^h.Sum64(), index*0x9e3779b97f4a7c15+1))
}

// chance is true with probability p.
func (e *engine) chance(p float64, purpose string, index uint64) bool {
	return p > 0 && stream(e.seed, purpose, index).Float64() < p
}

// around draws a duration near a mean: log-normal, so that some are a good deal longer.
func (e *engine) around(mean int64, spread float64, purpose string, index uint64) int64 {
	r := stream(e.seed, purpose, index)
	return int64(float64(mean) * math.Exp(spread*r.NormFloat64()-spread*spread/2))
}
