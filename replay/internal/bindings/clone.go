package bindings

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Clone holds the values of a plan's symbols for one copy of it. IDs count from 1;
// index 0 is unused.
type Clone struct {
	Number   int
	Objects  []Object
	States   []State
	Clients  []Client
	Sessions []Session
	Base     []byte         // handle of the directory given
	Root     []byte         // what stands for the captured server's root; nil: the live root
	NoRoot   bool           // nothing stands for the captured server's root
	Names    map[int]string // live names of the base and of what lies above it

	load     *workload.Workload
	tag      string
	owners   []uint32 // next seqid
	cookies  map[int]*listing
	byOther  map[[12]byte]int // live state ids to states
	listings map[int]bool     // READDIRs that others continue; nil: any may be
	guards   bool             // some op may need a time of last change
	order    []int            // of cookies, by age, unless listings says which ones are needed
	entries  int              // in cookies
	args     workload.Arguments
	opened   []int       // sessions that have got their slots since TakeOpened
	outcome  ops.Outcome // of the result at hand

	apart     bool // the server has other handles for NFSv3 than for NFSv4
	lacks     Lacks
	supported nfs4.Bitmap4 // attributes; nil: not known
	attrs     nfs4.Attrs   // at hand
}

// Object is a file, directory or other object.
type Object struct {
	Handle []byte // nil: not known
	// handle3 is the NFSv3 handle, if the server uses different handles for NFSv3 and NFSv4.
	handle3 []byte
	// Prepared says that the preparation has made it or written to it, Filled how many bytes
	// it has written from its start, and Emptied that it has made it, so that nothing else
	// is in it. Size is how long it is then.
	Prepared, Emptied bool
	Filled, Size      uint64

	ctime [8]byte // nfstime3
	timed bool
}

// State is an open, a lock, a delegation, a layout.
type State struct {
	Bound  bool
	Closed bool
	// Refused says that the live server did not give what the captured one gave: a
	// delegation, as a rule.
	Refused bool
	// Open says that this is an open: the server gave no delegation, the captured one gave only a delegation. It is closed when
	// the captured client returns the delegation.
	Open bool
	// Times says that this is a delegation with which the client keeps the times of the file (RFC 9754).
	Times bool
	// Unconfirmed says that the server wants OPEN_CONFIRM (NFSv4.0).
	Unconfirmed bool

	// Steps are the calls of the plan that have made it what it is, the first maxSteps:
	// OPEN and OPEN_DOWNGRADE, LOCK and LOCKU. More says that there were others.
	Steps []Step
	More  bool

	other [12]byte
	seqid uint32
	// alias is an earlier state with the same state id, 0 if there is none: the captured
	// server had told them apart.
	alias int
}

// held reports whether the server has given a delegation that has not been returned.
func (s *State) held() bool { return s.Bound && !s.Closed && !s.Open }

// Client is a client id.
type Client struct {
	ID    uint64
	Bound bool
	// Lives is how often it was made anew, since the server had forgotten it. Complete
	// says that the plan's RECLAIM_COMPLETE has taken place.
	Lives       int
	Complete    bool
	unknownOpen bool // it has opened a file of whose state the plan knows nothing

	confirm   [8]byte
	createSeq uint32
	verifier  [8]byte
	owner     []byte
}

// listing is what a READDIR gave that another one continues with.
type listing struct {
	cookies  []uint64
	verifier [8]byte
}

// Beside is a clone in which nothing has a value, to find the handles of NFSv3 with.
func (w *Clone) Beside() *Clone { return newWorld(w.load, w.Number, w.tag) }

// Take gives calls of NFSv3 the handles of another clone, if the server has other ones for NFSv3.
func (w *Clone) Take(o *Clone) {
	for i := range w.Objects {
		w.apart = w.apart || o.Objects[i].Handle != nil && w.Objects[i].Handle != nil && !bytes.Equal(o.Objects[i].Handle, w.Objects[i].Handle)
	}
	for i := range w.Objects {
		w.Objects[i].handle3 = o.Objects[i].Handle
	}
}

// Share gives a clone the objects of another one: what one of them finds, both have.
func (w *Clone) Share(o *Clone) {
	w.Objects, w.Names, w.Base, w.Root, w.NoRoot, w.apart = o.Objects, o.Names, o.Base, o.Root, o.NoRoot, o.apart
}

// Apart reports whether the server has other handles for NFSv3 than for NFSv4.
func (w *Clone) Apart() bool { return w.apart }

// HandleFor is where the handle of an object is that an op has: nil is an op of NFSv3.
func (w *Clone) HandleFor(c *plan.Compound, id int) *[]byte {
	if w.apart && c == nil {
		return &w.Objects[id].handle3
	}
	return &w.Objects[id].Handle
}

// New makes n Clones in which nothing has a value but what the client chooses by
// itself. tag is unlike that of other runs.
func New(w *workload.Workload, n int, tag string) []*Clone {
	listings, guards := asked(w)
	if w.Streams() {
		listings, guards = nil, true // what later ops ask for is not known yet
	}
	list := make([]*Clone, n)
	for i := range list {
		list[i] = newWorld(w, i, tag)
		list[i].listings, list[i].guards = listings, guards
	}
	return list
}

func newWorld(w *workload.Workload, number int, tag string) *Clone {
	t := &w.Tables
	d := &Clone{
		Number:   number,
		load:     w,
		tag:      tag,
		Objects:  make([]Object, len(t.Objects)+1),
		States:   make([]State, len(t.States)+1),
		Clients:  make([]Client, len(t.Clients)+1),
		Sessions: make([]Session, len(t.Sessions)+1),
		Names:    map[int]string{},
		owners:   make([]uint32, len(t.Owners)+1),
		cookies:  map[int]*listing{},
		byOther:  map[[12]byte]int{},
	}
	for i := range t.Clients {
		c := &d.Clients[i+1]
		_, _ = rand.Read(c.verifier[:]) // cannot fail (crypto/rand)
		// A name of its own for each run: the server takes nobody else's state for
		// ours, nor ours for that of an earlier run.
		c.owner = fmt.Appendf(OwnerPrefix(tag), "%d/%d %s", number, i+1, t.Clients[i].Owner)
		if len(c.owner) > nfs4.NFS4_OPAQUE_LIMIT {
			c.owner = c.owner[:nfs4.NFS4_OPAQUE_LIMIT]
		}
	}
	return d
}

// OwnerPrefix is how the names begin by which a run's clients introduce themselves to
// a server of NFSv4. No other run has it.
func OwnerPrefix(tag string) []byte { return fmt.Appendf(nil, "rpcrdma-replay %s/", tag) }

// asked finds out which values of replies calls will ask for: READDIRs that others
// continue, and whether any needs a time of last change.
func asked(load *workload.Workload) (listings map[int]bool, guards bool) {
	listings = map[int]bool{}
	for _, o := range load.Ops {
		o.EachField(func(f *plan.Field) {
			switch f.Kind {
			case plan.FieldCookie, plan.FieldCookieVerf:
				listings[f.Op] = true
			case plan.FieldCtime:
				guards = true
			}
		})
	}
	return listings, guards
}

// maxEntries is how many entries of listings are kept if it is not known which of these others
// continue.
const maxEntries = 1 << 20

// list keeps what a listing may be continued with.
func (w *Clone) list(op int, l *listing) {
	if w.listings != nil {
		if w.listings[op] {
			w.cookies[op] = l
		}
		return
	}
	if w.cookies[op] == nil {
		w.order = append(w.order, op)
	}
	w.cookies[op] = l
	// An empty one takes memory, too.
	for w.entries += len(l.cookies) + 8; w.entries > maxEntries && len(w.order) > 1; {
		old := w.order[0]
		w.order = w.order[1:]
		w.entries -= len(w.cookies[old].cookies) + 8
		delete(w.cookies, old)
	}
}

// Find is the state that a live state id belongs to; 0 if it is not known.
func (w *Clone) Find(s *nfs4.Stateid4) int { return w.byOther[s.Other] }

// bindState gives a state its value.
func (w *Clone) bindState(ref int, s *nfs4.Stateid4) {
	if *s == (nfs4.Stateid4{}) {
		return
	}
	st := &w.States[ref]
	if st.Bound && st.other == s.Other {
		w.advance(s)
		return
	}
	was := *st
	delete(w.byOther, was.other)
	*st = State{other: s.Other, seqid: s.Seqid, Bound: true}
	if was.Bound && !was.Closed { // reclaimed: the same under another state id
		st.Steps, st.More, st.Unconfirmed, st.alias = was.Steps, was.More, was.Unconfirmed, was.alias
	} else if first := w.byOther[s.Other]; first != ref {
		st.alias = first
	}
	w.byOther[s.Other] = ref
}

// Latest reports whether a state is the latest of those with the same state id.
func (w *Clone) Latest(ref int) bool { return w.byOther[w.States[ref].other] == ref }

// Aliases are earlier states with the same state id.
func (w *Clone) Aliases(ref int) (list []int) {
	other := w.States[ref].other
	for i := w.States[ref].alias; i > 0 && i < len(w.States) && w.States[i].other == other && len(list) < len(w.States); i = w.States[i].alias {
		list = append(list, i)
	}
	return list
}

// Follow gives a state the state id of another one.
func (w *Clone) Follow(ref, as int) {
	w.States[ref].other, w.States[ref].seqid = w.States[as].other, w.States[as].seqid
}

// end notes that a state is no more, with all that have the same state id.
func (w *Clone) end(ref int) {
	w.States[ref].Closed = true
	if last := w.byOther[w.States[ref].other]; last > 0 && w.States[last].other == w.States[ref].other {
		w.States[last].Closed = true
		for _, i := range w.Aliases(last) {
			w.States[i].Closed = true
		}
	}
}

// advance moves the seqid of a state on.
func (w *Clone) advance(s *nfs4.Stateid4) {
	if i, ok := w.byOther[s.Other]; ok {
		// A reply that was overtaken by another has an older seqid.
		if st := &w.States[i]; st.other == s.Other && (int32(s.Seqid-st.seqid) > 0 || s.Seqid == 1 && st.seqid == 0xffffffff) {
			st.seqid = s.Seqid
		}
	}
}

// changedAt keeps the time of last change of an object.
func (w *Clone) changedAt(ref int, sec, nsec uint32) {
	if ref <= 0 || ref >= len(w.Objects) {
		return
	}
	o := &w.Objects[ref]
	binary.BigEndian.PutUint32(o.ctime[:], sec)
	binary.BigEndian.PutUint32(o.ctime[4:], nsec)
	o.timed = true
}
