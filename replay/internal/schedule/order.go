package schedule

import (
	"container/heap"
	"math"
	"time"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// order keeps the captured order of one copy of the plan: a call waits for all whose replies
// were there before it. So it may go when its time is before the earliest end of those that
// are not over. As the times of ops never decrease, calls pass in the order of the plan.
//
// A capture of several files may have times that decrease. The latest time so far counts then:
// a call waits for no later one.
type order struct {
	ends ends
	next int // ID of the first op that has not passed
}

// ordered reports whether the captured order is kept where only time connects calls. Timings
// that are paced keep it by themselves.
func (s *Schedule) ordered() bool { return !s.opt.Relaxed && !s.opt.Timing.Paced() }

// add adds a call that began at a captured time.
func (o *order) add(op *plan.Op, start int64) {
	if op.Latency < 0 {
		return // nobody has seen its reply
	}
	last := int64(math.MaxInt64)
	if length := max(op.Latency, 1); start <= math.MaxInt64-length {
		last = start + length
	}
	heap.Push(&o.ends, end{last, op.ID})
}

// pass releases the calls of a clone that come next in the captured order.
func (s *Schedule) pass(clone int, at time.Duration) error {
	o := &s.clones[clone].order
	for o.next = max(o.next, s.first); ; o.next++ {
		x := s.slot(o.next)
		if x == nil {
			return nil
		}
		for len(o.ends) > 0 {
			if p := s.slot(o.ends[0].id); p != nil && !p.entries[clone].over {
				break
			}
			heap.Pop(&o.ends)
		}
		if len(o.ends) > 0 && o.ends[0].at <= x.start {
			return nil
		}
		if e := &x.entries[clone]; !e.over {
			if err := s.release(e, at); err != nil {
				return err
			}
		}
	}
}

// end is the captured end of a call.
type end struct {
	at int64
	id int
}

// ends is a heap, the earliest end first. Those of calls that are over are removed when they
// come to its top.
type ends []end

func (l ends) Len() int           { return len(l) }
func (l ends) Less(i, j int) bool { return l[i].at < l[j].at }
func (l ends) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface.
func (l *ends) Push(x any) { *l = append(*l, x.(end)) }

// Pop implements heap.Interface.
func (l *ends) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	*l = (*l)[:last]
	return x
}
