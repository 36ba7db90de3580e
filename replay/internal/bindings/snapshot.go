package bindings

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// Snapshot is what a Clone holds, for a run that goes on in another process. Objects and the like
// are by ID; those that have no value are left out.
type Snapshot struct {
	Apart    bool                 `json:"apart,omitempty"` // handles of NFSv3 are others
	Base     []byte               `json:"base"`
	Root     []byte               `json:"root,omitempty"`
	NoRoot   bool                 `json:"no_root,omitempty"`
	Names    map[int]string       `json:"names,omitempty"`
	Objects  map[int]savedObject  `json:"objects,omitempty"`
	States   map[int]savedState   `json:"states,omitempty"`
	Clients  map[int]savedClient  `json:"clients,omitempty"`
	Sessions map[int]savedSession `json:"sessions,omitempty"`
	Owners   map[int]uint32       `json:"owners,omitempty"`
	Listings []savedListing       `json:"listings,omitempty"` // by age
	Latest   map[int]bool         `json:"latest,omitempty"`   // states that are the latest with their state id

	Lacks     Lacks        `json:"lacks,omitempty"`
	Supported nfs4.Bitmap4 `json:"supported,omitempty"` // bitmap of attributes
}

type savedObject struct {
	Handle   []byte `json:"handle,omitempty"`
	Handle3  []byte `json:"handle3,omitempty"`
	Prepared bool   `json:"prepared,omitempty"`
	Emptied  bool   `json:"emptied,omitempty"`
	Filled   uint64 `json:"filled,omitempty"`
	Size     uint64 `json:"size,omitempty"`
	Ctime    []byte `json:"ctime,omitempty"`
}

type savedState struct {
	Bound       bool   `json:"bound,omitempty"`
	Closed      bool   `json:"closed,omitempty"`
	Refused     bool   `json:"refused,omitempty"`
	Unconfirmed bool   `json:"unconfirmed,omitempty"`
	More        bool   `json:"more,omitempty"`
	Steps       []Step `json:"steps,omitempty"`
	Other       []byte `json:"other,omitempty"`
	Seqid       uint32 `json:"seqid,omitempty"`
	Alias       int    `json:"alias,omitempty"`
	Open        bool   `json:"open,omitempty"`
}

type savedClient struct {
	ID        uint64 `json:"id,omitempty"`
	Bound     bool   `json:"bound,omitempty"`
	Lives     int    `json:"lives,omitempty"`
	Complete  bool   `json:"complete,omitempty"`
	Stray     bool   `json:"stray,omitempty"`
	Confirm   []byte `json:"confirm,omitempty"`
	CreateSeq uint32 `json:"create_seq,omitempty"`
	Verifier  []byte `json:"verifier"`
	Owner     []byte `json:"owner"`
}

type savedSession struct {
	ID    []byte   `json:"id"`
	Bound bool     `json:"bound,omitempty"`
	Lost  bool     `json:"lost,omitempty"`
	Lives int      `json:"lives,omitempty"`
	Next  []uint32 `json:"next"` // of each slot
	Dead  []bool   `json:"dead"`
}

type savedListing struct {
	Op       int      `json:"op"`
	Cookies  []uint64 `json:"cookies,omitempty"`
	Verifier []byte   `json:"verifier"`
}

// Snapshot returns what the clone holds. No call is in flight.
func (w *Clone) Snapshot() *Snapshot {
	s := &Snapshot{Base: w.Base, Apart: w.apart, Root: w.Root, NoRoot: w.NoRoot, Names: w.Names, Objects: map[int]savedObject{}, States: map[int]savedState{},
		Clients: map[int]savedClient{}, Sessions: map[int]savedSession{}, Owners: map[int]uint32{}, Latest: map[int]bool{},
		Lacks: w.lacks, Supported: w.supported}
	for id := range w.Objects {
		o := &w.Objects[id]
		x := savedObject{Handle: o.Handle, Handle3: o.handle3, Prepared: o.Prepared, Emptied: o.Emptied, Filled: o.Filled, Size: o.Size}
		if o.timed {
			x.Ctime = o.ctime[:]
		}
		if o.Handle != nil || o.handle3 != nil || o.Prepared || o.timed {
			s.Objects[id] = x
		}
	}
	for id := range w.States {
		o := &w.States[id]
		if o.Bound || o.Closed || o.Refused {
			s.States[id] = savedState{o.Bound, o.Closed, o.Refused, o.Unconfirmed, o.More, o.Steps, o.other[:], o.seqid, o.alias, o.Open}
		}
	}
	for _, id := range w.byOther {
		s.Latest[id] = true
	}
	for id := range w.Clients {
		c := &w.Clients[id]
		if id > 0 {
			s.Clients[id] = savedClient{c.ID, c.Bound, c.Lives, c.Complete, c.unknownOpen, c.confirm[:], c.createSeq, c.verifier[:], c.owner}
		}
	}
	for id := range w.Sessions {
		x := &w.Sessions[id]
		if x.slots == nil {
			continue
		}
		y := savedSession{ID: x.ID[:], Bound: x.Bound, Lost: x.Lost, Lives: x.Lives}
		for i := range x.slots {
			y.Next, y.Dead = append(y.Next, x.slots[i].seq), append(y.Dead, x.slots[i].busy)
		}
		s.Sessions[id] = y
	}
	for id, n := range w.owners {
		if n != 0 {
			s.Owners[id] = n
		}
	}
	order := w.order
	if w.listings != nil {
		for op := range w.cookies {
			order = append(order, op)
		}
	}
	for _, op := range order {
		l := w.cookies[op]
		s.Listings = append(s.Listings, savedListing{op, l.cookies, l.verifier[:]})
	}
	return s
}

// Restore gives a new clone of the same plan what another one held. It reports whether the
// snapshot fits the plan.
func (w *Clone) Restore(s *Snapshot) bool {
	fits := true
	in := func(id, n int) bool {
		ok := id > 0 && id < n
		fits = fits && ok
		return ok
	}
	w.Base, w.Root, w.NoRoot, w.apart = s.Base, s.Root, s.NoRoot, s.Apart
	w.lacks, w.supported = s.Lacks, s.Supported
	for id, n := range s.Names {
		if in(id, len(w.Objects)) {
			w.Names[id] = n
		}
	}
	for id, x := range s.Objects {
		if in(id, len(w.Objects)) {
			o := Object{Handle: x.Handle, handle3: x.Handle3, Prepared: x.Prepared, Emptied: x.Emptied, Filled: x.Filled, Size: x.Size, timed: x.Ctime != nil}
			copy(o.ctime[:], x.Ctime)
			w.Objects[id] = o
		}
	}
	for id, x := range s.States {
		if in(id, len(w.States)) && (x.Alias == 0 || in(x.Alias, len(w.States))) {
			o := State{Bound: x.Bound, Closed: x.Closed, Refused: x.Refused, Unconfirmed: x.Unconfirmed, Open: x.Open, More: x.More, Steps: x.Steps, seqid: x.Seqid, alias: x.Alias}
			copy(o.other[:], x.Other)
			w.States[id] = o
			if s.Latest[id] {
				w.byOther[o.other] = id
			}
		}
	}
	for id, x := range s.Clients {
		if in(id, len(w.Clients)) {
			c := Client{ID: x.ID, Bound: x.Bound, Lives: x.Lives, Complete: x.Complete, unknownOpen: x.Stray, createSeq: x.CreateSeq, owner: x.Owner}
			copy(c.confirm[:], x.Confirm)
			copy(c.verifier[:], x.Verifier)
			w.Clients[id] = c
		}
	}
	for id, x := range s.Sessions {
		if !in(id, len(w.Sessions)) || len(x.Dead) != len(x.Next) || len(x.Next) > maxSlots {
			fits = false
			continue
		}
		y := Session{Bound: x.Bound, Lost: x.Lost, Lives: x.Lives, slots: make([]slot, len(x.Next))}
		copy(y.ID[:], x.ID)
		for i := range y.slots {
			y.slots[i] = slot{x.Next[i], x.Dead[i], x.Dead[i]}
		}
		w.Sessions[id] = y
	}
	for id, n := range s.Owners {
		if in(id, len(w.owners)) {
			w.owners[id] = n
		}
	}
	for i := range s.Listings {
		l := &listing{cookies: s.Listings[i].Cookies}
		copy(l.verifier[:], s.Listings[i].Verifier)
		w.list(s.Listings[i].Op, l)
	}
	return fits
}

// EachHeld calls f for the handles of objects that the clone holds, and for what the server gave
// to its clients.
func (w *Clone) EachHeld(object func(id int, handle []byte), client func(uint64), session func([16]byte), state func([12]byte)) {
	for id := range w.Objects {
		for _, h := range [][]byte{w.Objects[id].Handle, w.Objects[id].handle3} {
			if h != nil {
				object(id, h)
			}
		}
	}
	for id := range w.Clients {
		if c := &w.Clients[id]; c.Bound {
			client(c.ID)
		}
	}
	for id := range w.Sessions {
		if s := &w.Sessions[id]; s.Bound {
			session(s.ID)
		}
	}
	for id := range w.States {
		if s := &w.States[id]; s.Bound {
			state(s.other)
		}
	}
}
