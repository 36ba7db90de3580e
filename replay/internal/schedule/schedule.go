package schedule

import (
	"container/heap"
	"time"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// Schedule is what remains to be sent. It belongs to one goroutine.
type Schedule struct {
	opt      Options
	ops      []*plan.Op
	entries  [][]Entry
	children [][]int32 // by op ID: indices of the ops that wait for it
	agenda   agenda
}

// New makes the entries of all worlds and finds out what waits for what. Op i of ops
// has ID i+1.
func New(t *plan.Tables, ops []*plan.Op, o Options) *Schedule {
	s := &Schedule{opt: o, ops: ops, children: make([][]int32, len(ops)+1), entries: make([][]Entry, o.Worlds)}
	parents := s.connect(t)
	for w := range s.entries {
		list := make([]Entry, len(ops))
		for i, op := range ops {
			list[i] = Entry{Op: op, World: w, missing: parents[op.ID], due: s.due(i, w)}
			if list[i].missing == 0 {
				list[i].state = Ready
				s.agenda = append(s.agenda, &list[i])
			}
		}
		s.entries[w] = list
	}
	heap.Init(&s.agenda)
	return s
}

// due is when the i-th call of a world is to be sent, whatever it waits for.
func (s *Schedule) due(i, world int) time.Duration {
	o := s.ops[i]
	switch s.opt.Timing {
	case AsCaptured:
		return s.opt.scaled(o.Time)
	case Think:
		if o.After == 0 {
			return s.opt.scaled(o.Time)
		}
	case FixedRate:
		n := i*s.opt.Worlds + world
		return time.Duration(float64(n) / s.opt.Rate * float64(time.Second))
	}
	return 0
}

// connect fills children, and returns by op ID how many replies an op waits for.
func (s *Schedule) connect(t *plan.Tables) (parents []int32) {
	parents = make([]int32, len(s.ops)+1)
	more := edges(t, s.ops)
	if !s.opt.Relaxed && !s.opt.Timing.Paced() {
		capturedOrder(s.ops, more)
	}
	for i, o := range s.ops {
		seen := map[int]bool{}
		add := func(dep int) {
			if dep > 0 && dep < o.ID && !seen[dep] {
				seen[dep] = true
				s.children[dep] = append(s.children[dep], int32(i))
				parents[o.ID]++
			}
		}
		for _, d := range o.Deps {
			if counts(d.Kind) {
				add(d.Op)
			}
		}
		for _, d := range more[o.ID] {
			add(d)
		}
		if s.opt.Timing == Think {
			add(o.After)
		}
	}
	return parents
}

// Next is the entry that is due first, of those that wait for nothing but their time,
// and when it is due; nil if there is none.
func (s *Schedule) Next() (*Entry, time.Duration) {
	if len(s.agenda) == 0 {
		return nil, 0
	}
	return s.agenda[0], s.agenda[0].due
}

// Take removes what Next returned.
func (s *Schedule) Take() *Entry { return heap.Pop(&s.agenda).(*Entry) }

// Return puts back what Take removed.
func (s *Schedule) Return(e *Entry) { heap.Push(&s.agenda, e) }

// Extra makes an entry for a call that the plan does not have. It is ready.
func (s *Schedule) Extra(o *plan.Op, world int) *Entry {
	return &Entry{Op: o, World: world, state: Ready}
}

// Ended releases what waits for an entry, which was over at a time. Of an entry that
// Extra made it does nothing.
func (s *Schedule) Ended(e *Entry, at time.Duration) error {
	list := s.entries[e.World]
	if i := e.Op.ID - 1; i < 0 || i >= len(list) || &list[i] != e {
		return nil
	}
	for _, i := range s.children[e.Op.ID] {
		c := &list[i]
		c.ready = max(c.ready, at)
		if s.opt.Timing == Think && c.Op.After == e.Op.ID {
			c.due = at + s.opt.scaled(c.Op.Think)
		}
		if c.missing--; c.missing == 0 {
			if err := c.Step(Released); err != nil {
				return err
			}
			heap.Push(&s.agenda, c)
		}
	}
	return nil
}
