package schedule

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// Schedule is a window of the calls that remain to be sent: from the first op that is not
// over to the last that was added. What it holds does not grow with the ops before and
// behind the window. It belongs to one goroutine.
type Schedule struct {
	opt   Options
	graph graph

	first  int // ID of the first op of the window
	slots  []*slot
	head   int // slots[head] is the first op
	text   int // bytes, of the ops of the window
	latest int64
	clones []copied
	agenda agenda

	scratch []int
}

// copied is one copy of the plan.
type copied struct {
	order order
	// last is when a call was over most recently, and left when one was that has left the
	// window.
	last, left time.Duration
}

// slot is an op of the window, in all clones.
type slot struct {
	op       *plan.Op
	text     int
	start    int64 // captured; never less than that of an earlier op
	children []int // IDs of ops that wait for it
	entries  []Entry
	left     int // clones in which it is not over
}

// New makes an empty window.
func New(t *plan.Tables, o Options) *Schedule {
	s := &Schedule{opt: o, first: 1, latest: math.MinInt64, clones: make([]copied, o.Clones)}
	s.graph = graph{tables: t, hosts: map[string]*host{}, opens: map[open]*users{}}
	return s
}

// Start begins with another op than the first, at a time of the replay.
func (s *Schedule) Start(first int, at time.Duration) {
	s.first = first
	for w := range s.clones {
		s.clones[w].order.next, s.clones[w].left = first, at
	}
}

// First is the ID of the first op of the window, or of the next to be added if it is empty:
// all before it are over.
func (s *Schedule) First() int { return s.first }

// Since is the captured time of the first op of the window; ok is false if there is none.
func (s *Schedule) Since() (at int64, ok bool) {
	if s.Len() == 0 {
		return 0, false
	}
	return s.slots[s.head].start, true
}

// Len is how many ops the window has.
func (s *Schedule) Len() int { return len(s.slots) - s.head }

// Text is how many bytes the ops of the window have in the plan.
func (s *Schedule) Text() int { return s.text }

// slot is an op of the window; nil if it has left it.
func (s *Schedule) slot(id int) *slot {
	if id < s.first || id >= s.first+s.Len() {
		return nil
	}
	return s.slots[s.head+id-s.first]
}

// Add adds the next op, whose line in the plan has the given length. over reports in which
// clones it is over already; nil means in none.
func (s *Schedule) Add(o *plan.Op, text int, over func(clone int) bool) error {
	if o.ID != s.first+s.Len() {
		return fmt.Errorf("op %d, expected %d", o.ID, s.first+s.Len())
	}
	s.latest = max(s.latest, o.Time)
	x := &slot{op: o, text: text, start: s.latest, entries: make([]Entry, s.opt.Clones), left: s.opt.Clones}
	s.slots = append(s.slots, x)
	s.text += text
	parents := s.parents(o)
	for w := range x.entries {
		e := &x.entries[w]
		*e = Entry{Op: o, Clone: w, window: true, due: s.due(o, w)}
		if over != nil && over(w) {
			e.over = true
			x.left--
			continue
		}
		if !s.opt.Timing.Paced() {
			e.ready = s.clones[w].last
		}
		for _, id := range parents {
			if p := s.slot(id); !p.entries[w].over {
				e.missing++
			}
		}
		s.thinks(e)
		if s.ordered() {
			e.missing++
		}
		if e.missing == 0 {
			s.ready(e)
		}
	}
	for _, id := range parents {
		if p := s.slot(id); p.left > 0 {
			p.children = append(p.children, o.ID)
		}
	}
	for w := range x.entries {
		c := &s.clones[w]
		if s.ordered() {
			if !x.entries[w].over {
				c.order.add(o, x.start)
			}
			if err := s.pass(w, c.last); err != nil {
				return err
			}
		}
	}
	s.leave()
	return nil
}

// parents are the ops of the window that an op waits for.
func (s *Schedule) parents(o *plan.Op) []int {
	list := s.scratch[:0]
	for _, d := range o.Deps {
		if counts(d.Kind) {
			list = append(list, d.Op)
		}
	}
	list = s.graph.edges(list, o, s)
	if s.opt.Timing == Think {
		list = append(list, o.After)
	}
	s.scratch = list
	slices.Sort(list)
	list = slices.Compact(list)
	list = slices.DeleteFunc(list, func(id int) bool { return id >= o.ID || s.slot(id) == nil })
	return list
}

// due is when a call is to be sent, whatever it waits for.
func (s *Schedule) due(o *plan.Op, clone int) time.Duration {
	begin := Span(float64(s.opt.Stagger) * float64(clone))
	switch s.opt.Timing {
	case AsCaptured:
		return begin + s.opt.scaled(o.Time)
	case Think:
		if o.After == 0 {
			return begin + s.opt.scaled(o.Time)
		}
	case FixedRate:
		n := (o.ID-1)*s.opt.Clones + clone
		return begin + Span(float64(n)/s.opt.Rate*float64(time.Second))
	}
	return begin
}

// thinks sets the time of a call whose previous reply is there already.
func (s *Schedule) thinks(e *Entry) {
	if s.opt.Timing != Think || e.Op.After == 0 {
		return
	}
	switch p := s.slot(e.Op.After); {
	case p == nil: // a window ago or more: its time is not known any more
		e.due = s.clones[e.Clone].left + s.opt.scaled(e.Op.Think)
	case p.entries[e.Clone].over:
		e.due = p.entries[e.Clone].ended + s.opt.scaled(e.Op.Think)
	}
}

// ready puts a call that waits for nothing but its time on the agenda.
func (s *Schedule) ready(e *Entry) {
	e.state = Ready
	heap.Push(&s.agenda, e)
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
func (s *Schedule) Extra(o *plan.Op, clone int) *Entry {
	return &Entry{Op: o, Clone: clone, state: Ready}
}

// Unfinished visits the calls of the window that are not over, in order.
func (s *Schedule) Unfinished(f func(*Entry)) {
	for _, x := range s.slots[s.head:] {
		for w := range x.entries {
			if !x.entries[w].over {
				f(&x.entries[w])
			}
		}
	}
}

// Ended releases what waits for an entry, which was over at a time. Of an entry that
// Extra made it does nothing.
func (s *Schedule) Ended(e *Entry, at time.Duration) error {
	x := s.slot(e.Op.ID)
	if !e.window || e.over || x == nil {
		return nil
	}
	w := &s.clones[e.Clone]
	e.over, e.ended = true, at
	w.last = max(w.last, at)
	x.left--
	for _, id := range x.children {
		c := &s.slot(id).entries[e.Clone]
		if c.over {
			continue
		}
		if s.opt.Timing == Think && c.Op.After == e.Op.ID {
			c.due = at + s.opt.scaled(c.Op.Think)
		}
		if err := s.release(c, at); err != nil {
			return err
		}
	}
	if s.ordered() {
		if err := s.pass(e.Clone, at); err != nil {
			return err
		}
	}
	s.leave()
	return nil
}

// release takes away one of the things that a call waits for.
func (s *Schedule) release(c *Entry, at time.Duration) error {
	c.ready = max(c.ready, at)
	if c.missing--; c.missing > 0 {
		return nil
	}
	if err := c.Step(Released); err != nil {
		return err
	}
	heap.Push(&s.agenda, c)
	return nil
}

// leave removes ops from the window that are over in all clones, and that nothing before
// them holds there.
func (s *Schedule) leave() {
	for s.head < len(s.slots) && s.slots[s.head].left == 0 {
		x := s.slots[s.head]
		for w := range x.entries {
			s.clones[w].left = max(s.clones[w].left, x.entries[w].ended)
		}
		s.slots[s.head] = nil
		s.text -= x.text
		s.head++
		s.first++
	}
	if s.head > len(s.slots)/2 {
		n := copy(s.slots, s.slots[s.head:])
		clear(s.slots[n:])
		s.slots, s.head = s.slots[:n], 0
	}
}
