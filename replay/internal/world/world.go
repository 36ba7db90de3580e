package world

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// World holds the values of a plan's symbols for one copy of it. IDs count from 1;
// index 0 is unused.
type World struct {
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
	owners   []uint32 // next seqid
	cookies  map[int]*listing
	byOther  map[[12]byte]int // live state ids to states
	listings map[int]bool     // READDIRs that others continue
	guards   bool             // some op needs a time of last change
	opened   []int            // sessions that have got their slots since TakeOpened
	outcome  ops.Outcome      // of the result at hand
}

// Object is a file, directory or other object.
type Object struct {
	Handle []byte // nil: not known
	// Filled is how many bytes of made-up content the preparation has written to it, from
	// its start. Emptied says that it has made it, so that nothing stands behind them.
	Filled  uint64
	Emptied bool

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
	// Unconfirmed says that the server wants OPEN_CONFIRM (NFSv4.0).
	Unconfirmed bool

	other [12]byte
	seqid uint32
}

// Client is a client id.
type Client struct {
	ID    uint64
	Bound bool

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

// New makes n Worlds in which nothing has a value but what the client chooses by
// itself. tag is unlike that of other runs.
func New(w *workload.Workload, n int, tag string) []*World {
	listings, guards := asked(w)
	list := make([]*World, n)
	for i := range list {
		list[i] = newWorld(w, i, tag)
		list[i].listings, list[i].guards = listings, guards
	}
	return list
}

func newWorld(w *workload.Workload, number int, tag string) *World {
	t := &w.Tables
	d := &World{
		Number:   number,
		load:     w,
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
	fields := func(list []plan.Field) {
		for i := range list {
			switch list[i].Kind {
			case plan.FieldCookie, plan.FieldCookieVerf:
				listings[list[i].Op] = true
			case plan.FieldCtime:
				guards = true
			}
		}
	}
	for _, o := range load.Ops {
		fields(o.Args)
		if o.Compound == nil {
			continue
		}
		for i := range o.Compound.Ops {
			fields(o.Compound.Ops[i].Args)
		}
	}
	return listings, guards
}

// Find is the state that a live state id belongs to; 0 if it is not known.
func (w *World) Find(s *nfs4.Stateid4) int { return w.byOther[s.Other] }

// bindState gives a state its value.
func (w *World) bindState(ref int, s *nfs4.Stateid4) {
	if *s == (nfs4.Stateid4{}) {
		return
	}
	st := &w.States[ref]
	if st.Bound && st.other == s.Other {
		w.advance(s)
		return
	}
	*st = State{other: s.Other, seqid: s.Seqid, Bound: true}
	w.byOther[s.Other] = ref
}

// advance moves the seqid of a state on.
func (w *World) advance(s *nfs4.Stateid4) {
	if i, ok := w.byOther[s.Other]; ok {
		// A reply that was overtaken by another has an older seqid.
		if st := &w.States[i]; int32(s.Seqid-st.seqid) > 0 || s.Seqid == 1 && st.seqid == 0xffffffff {
			st.seqid = s.Seqid
		}
	}
}

// changedAt keeps the time of last change of an object.
func (w *World) changedAt(ref int, sec, nsec uint32) {
	if ref <= 0 || ref >= len(w.Objects) {
		return
	}
	o := &w.Objects[ref]
	binary.BigEndian.PutUint32(o.ctime[:], sec)
	binary.BigEndian.PutUint32(o.ctime[4:], nsec)
	o.timed = true
}

// Rehearse gives every symbol a value that no server has given.
func (w *World) Rehearse() {
	for i := 1; i < len(w.Objects); i++ {
		w.Objects[i].Handle = fmt.Appendf(nil, "object %d", i)
	}
	for i := 1; i < len(w.Clients); i++ {
		w.Clients[i].ID, w.Clients[i].Bound = uint64(i), true
	}
	for i := 1; i < len(w.Sessions); i++ {
		var id [16]byte
		binary.BigEndian.PutUint64(id[:], uint64(i))
		w.bindSession(i, id, 1)
	}
	for i := 1; i < len(w.States); i++ {
		w.States[i] = State{other: RehearsedState(i), seqid: 1, Bound: true}
	}
}

// RehearsedState is what Rehearse gives a state.
func RehearsedState(ref int) (other [12]byte) {
	binary.BigEndian.PutUint64(other[:], uint64(ref))
	return other
}
