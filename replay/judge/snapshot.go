package judge

import (
	"maps"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Snapshot is what a Judge of a plan in a file remembers, for a run that goes on in another
// process at op Next.
type Snapshot struct {
	Clones map[int]savedHistory `json:"worlds"`
	// Changed are the calls that change each object, of those before Next; Held and Silent are the
	// ones of them that may have been in flight together with a later one.
	Changed map[int]savedChanges `json:"changed,omitempty"`
	Held    []savedHeld          `json:"held,omitempty"`
	Silent  []*plan.Op           `json:"silent,omitempty"`
	Dropped int                  `json:"dropped,omitempty"`
	Cuts    savedCuts            `json:"cuts"`
}

type savedHistory struct {
	Unhappened map[int]*verdict.Call  `json:"unhappened,omitempty"`
	Named      []savedNamed           `json:"named,omitempty"`
	Listings   map[int]map[string]int `json:"listings,omitempty"`
	Continues  map[int]int            `json:"continues,omitempty"`
	Expected   *expected.Snapshot     `json:"ledger"`
	OnlyHere   []*plan.Op             `json:"only_here,omitempty"`
	Verifiers  map[int][8]byte        `json:"verifiers,omitempty"`
	Tick       time.Duration          `json:"tick_ns,omitempty"`
	Fine       bool                   `json:"fine,omitempty"`
	Clocks     map[int]savedClock     `json:"clocks,omitempty"`
	Handles    []savedHandle          `json:"handles,omitempty"`
	Chains     map[int]savedChain     `json:"chains,omitempty"`
	Changes    map[int]int            `json:"changes,omitempty"`
	Locks      []savedLock            `json:"locks,omitempty"`
	// What is lacking here: names that a call did not give or take, and owners and modes that it did not set.
	Lacking []savedLack           `json:"lacking,omitempty"`
	Rights  map[int]*verdict.Call `json:"rights,omitempty"`
	Others  map[int]bool          `json:"others,omitempty"`
	Rtmax   uint32                `json:"rtmax,omitempty"`
	Squash  string                `json:"squash,omitempty"`

	Changed  bool `json:"changed,omitempty"`
	Refusing bool `json:"refusing,omitempty"`
}

type savedLack struct {
	Dir  int           `json:"dir"`
	Name []byte        `json:"name"`
	Call *verdict.Call `json:"call"`
}

// savedLock is a range that an owner waits for, or has only here or only in the capture. Those that it has here are not
// saved: who goes on cannot know what became of them.
type savedLock struct {
	Object    int          `json:"object"`
	Owner     int          `json:"owner,omitempty"`
	Client    int          `json:"client,omitempty"`
	From      uint64       `json:"from"`
	To        uint64       `json:"to"`
	Exclusive bool         `json:"exclusive,omitempty"`
	Waits     bool         `json:"waits,omitempty"`
	Only      bool         `json:"only,omitempty"`
	Call      verdict.Call `json:"call"`
}

type savedNamed struct {
	Name []byte        `json:"name"`
	Call *verdict.Call `json:"call"`
}

type savedHandle struct {
	Handle []byte `json:"handle"`
	File   uint64 `json:"file"`
}

type savedClock struct {
	Change savedReading `json:"change"`
	Ctime  savedReading `json:"ctime"`
	Mtime  savedReading `json:"mtime"`
	Data   [2]time.Time `json:"data"`
	Any    [2]time.Time `json:"any"`
}

type savedReading struct {
	Is    uint64    `json:"is,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Known bool      `json:"known,omitempty"`
}

type savedChain struct {
	Names   [][]byte `json:"names"`
	Changes int      `json:"changes"`
}

type savedChanges struct {
	N     int `json:"n"`
	First int `json:"first"`
}

type savedHeld struct {
	Op   *plan.Op `json:"op"`
	Text int      `json:"text"`
}

type savedCuts struct {
	Some    bool                  `json:"some,omitempty"`
	First   int64                 `json:"first,omitempty"`
	Any     *int64                `json:"any,omitempty"`
	Objects map[int]int64         `json:"objects,omitempty"`
	Parts   map[int][]savedSpan   `json:"parts,omitempty"`
	Names   map[int][]savedMoment `json:"names,omitempty"`
	Kept    int                   `json:"kept,omitempty"`
	More    int                   `json:"more,omitempty"`
}

type savedSpan struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	At   int64  `json:"at"`
}

type savedMoment struct {
	Name []byte `json:"name"`
	At   int64  `json:"at"`
}

// Snapshot returns what the judge remembers. unread are the ops from the one on at which the run
// will go on: they will be told again.
func (j *Judge) Snapshot(unread []*plan.Op) *Snapshot {
	m := j.moments
	s := &Snapshot{Clones: map[int]savedHistory{}, Changed: map[int]savedChanges{}, Dropped: m.dropped}
	for at, c := range m.changes {
		if !at.locks { // of locks only those in Held and Silent matter
			s.Changed[at.object] = savedChanges{c.n, c.first}
		}
	}
	first := 0
	if len(unread) > 0 {
		first = unread[0].ID
	}
	for _, o := range unread {
		if !o.Modifies {
			continue
		}
		for _, id := range j.load.Objects(o) {
			c := s.Changed[id]
			if c.N--; c.N == 0 {
				delete(s.Changed, id)
			} else {
				s.Changed[id] = c
			}
		}
	}
	for _, x := range m.held {
		if first == 0 || x.op.ID < first {
			s.Held = append(s.Held, savedHeld{x.op, x.text})
		}
	}
	for _, o := range m.silent {
		if first == 0 || o.ID < first {
			s.Silent = append(s.Silent, o)
		}
	}
	for n, h := range j.clones {
		s.Clones[n] = h.snapshot()
	}
	s.Cuts = j.cuts.snapshot()
	return s
}

func (h *history) snapshot() savedHistory {
	s := savedHistory{Unhappened: h.unhappened, Listings: h.listings, Continues: h.continues, Expected: h.expected.Snapshot(), OnlyHere: h.onlyHere,
		Verifiers: h.verifiers, Tick: h.clocks.tick, Fine: h.clocks.fine, Clocks: map[int]savedClock{}, Chains: map[int]savedChain{}, Changes: h.changes,
		Rights: h.lacking.rights, Others: h.others, Rtmax: h.rtmax, Squash: h.squash, Changed: h.changed, Refusing: h.refusing}
	for dir, names := range h.lacking.names {
		for n, c := range names {
			s.Lacking = append(s.Lacking, savedLack{dir, []byte(n), c})
		}
	}
	for n, c := range h.named {
		s.Named = append(s.Named, savedNamed{[]byte(n), c})
	}
	for n, id := range h.handles {
		s.Handles = append(s.Handles, savedHandle{[]byte(n), id})
	}
	reading := func(r *reading) savedReading { return savedReading{r.is, r.since, r.known} }
	for id, c := range h.clocks.objects {
		s.Clocks[id] = savedClock{reading(&c.change), reading(&c.ctime), reading(&c.mtime), [2]time.Time{c.data.sent, c.data.replied}, [2]time.Time{c.any.sent, c.any.replied}}
	}
	for object, f := range h.locks.files {
		for i, n := range slices.Concat(f.waiting, f.apart) {
			s.Locks = append(s.Locks, savedLock{object, n.owner, n.client, n.from, n.to, n.exclusive, i < len(f.waiting), n.only, n.call})
		}
	}
	for op, c := range h.chains {
		x := savedChain{Changes: c.changes}
		for n := range c.names {
			x.Names = append(x.Names, []byte(n))
		}
		s.Chains[op] = x
	}
	return s
}

func (c *cuts) snapshot() savedCuts {
	s := savedCuts{Some: c.some, First: c.first, Objects: map[int]int64{}, Parts: map[int][]savedSpan{}, Names: map[int][]savedMoment{}, Kept: c.kept, More: c.more}
	if c.any.known {
		s.Any = &c.any.at
	}
	for id, m := range c.objects {
		s.Objects[id] = m.at
	}
	for id, p := range c.parts {
		for _, x := range p.all() {
			s.Parts[id] = append(s.Parts[id], savedSpan{x.from, x.to, x.at})
		}
	}
	for n, m := range c.names {
		s.Names[n.dir] = append(s.Names[n.dir], savedMoment{[]byte(n.name), m.at})
	}
	return s
}

// Restore gives a new Judge what another one remembered.
func (j *Judge) Restore(s *Snapshot) {
	for n := range s.Clones {
		x := s.Clones[n]
		j.history(n).restore(&x)
	}
	if !j.load.Streams() {
		return // of the plan it knows all
	}
	m := j.moments
	// Objects with no call left in the list of changes are known by number only.
	held := slices.Clone(s.Held)
	slices.SortFunc(held, func(a, b savedHeld) int { return a.Op.ID - b.Op.ID })
	for _, x := range held {
		m.add(x.Op, x.Text)
	}
	for _, o := range s.Silent {
		m.add(o, 0)
	}
	for id, c := range s.Changed {
		at := changeable{object: id}
		if m.changes[at] == nil {
			m.changes[at] = &changes{}
		}
		m.changes[at].n, m.changes[at].first = c.N, c.First
	}
	m.dropped = s.Dropped
	j.cuts.restore(j, &s.Cuts)
}

func (h *history) restore(s *savedHistory) {
	maps.Copy(h.unhappened, s.Unhappened)
	for _, n := range s.Named {
		h.named[string(n.Name)] = n.Call
	}
	maps.Copy(h.listings, s.Listings)
	maps.Copy(h.continues, s.Continues)
	if s.Expected != nil {
		h.expected.Restore(s.Expected)
	}
	h.onlyHere = s.OnlyHere
	h.lacking.rights = s.Rights
	for _, x := range s.Lacking {
		h.lacking.put(expected.Name{Dir: x.Dir, Name: string(x.Name)}, x.Call)
	}
	maps.Copy(h.verifiers, s.Verifiers)
	maps.Copy(h.changes, s.Changes)
	maps.Copy(h.others, s.Others)
	h.rtmax, h.squash, h.changed, h.refusing = s.Rtmax, s.Squash, s.Changed, s.Refusing
	h.clocks.tick, h.clocks.fine = s.Tick, s.Fine
	reading := func(r savedReading) reading { return reading{r.Is, r.Since, r.Known} }
	for id, c := range s.Clocks {
		if k := h.clocks.of(id); k != nil {
			*k = clock{reading(c.Change), reading(c.Ctime), reading(c.Mtime), interval{c.Data[0], c.Data[1]}, interval{c.Any[0], c.Any[1]}}
		}
	}
	for _, x := range s.Handles {
		h.handles.is(x.Handle, x.File)
	}
	for _, x := range s.Locks {
		f := h.locks.file(x.Object)
		list := &f.apart
		if x.Waits {
			list = &f.waiting
		}
		h.locks.add(list, lockNote{lockOwner: lockOwner{x.Owner, x.Client}, byteRange: byteRange{x.From, x.To}, exclusive: x.Exclusive, only: x.Only, call: x.Call})
	}
	for op, x := range s.Chains {
		c := &chain{names: map[string]struct{}{}, changes: x.Changes}
		for _, n := range x.Names {
			c.names[string(n)] = struct{}{}
		}
		h.chains[op] = c
	}
}

func (c *cuts) restore(j *Judge, s *savedCuts) {
	if !s.Some {
		return
	}
	// The earliest one, which changes nothing, makes the index of names.
	c.add(j.load, &plan.Skip{Class: plan.Impossible, Code: plan.SkipCut, Time: s.First, Reads: true})
	c.kept, c.more = s.Kept, s.More
	if s.Any != nil {
		c.any = moment1{*s.Any, true}
	}
	for id, at := range s.Objects {
		earlier(c.objects, id, at)
	}
	for id, list := range s.Parts {
		p := &parts{}
		for _, x := range list {
			p.add(span{x.From, x.To, x.At})
		}
		c.parts[id] = p
	}
	for dir, list := range s.Names {
		for _, n := range list {
			earlier(c.names, place1{dir, string(n.Name)}, n.At)
		}
	}
}
