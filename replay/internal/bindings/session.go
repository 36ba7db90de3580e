package bindings

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// maxSlots is how many slots of a session are used.
const maxSlots = 4096

// Session is a session with its slots (RFC 8881, section 2.10.6).
type Session struct {
	ID    [16]byte
	Bound bool
	Lost  bool // no slot is left whose state is known
	Lives int  // how often it got its slots: those of a call that began before are gone
	slots []slot
}

type slot struct {
	seq  uint32 // next
	busy bool
	dead bool // a call in it had no reply: whether it was executed is not known
}

// bindSession starts a session's slots.
func (w *Clone) bindSession(ref int, id [16]byte, slots uint32) {
	s := &w.Sessions[ref]
	*s = Session{ID: id, Bound: true, Lives: s.Lives + 1, slots: make([]slot, max(1, min(slots, maxSlots)))}
	for i := range s.slots {
		s.slots[i].seq = 1
	}
	w.opened = append(w.opened, ref)
}

// TakeOpened returns the sessions that have got slots since it was last called.
func (w *Clone) TakeOpened() []int {
	list := w.opened
	w.opened = w.opened[:0]
	return list
}

// Vacant reports whether a slot is free.
func (s *Session) Vacant() bool {
	for i := range s.slots {
		if !s.slots[i].busy {
			return true
		}
	}
	return false
}

// Take finds a slot, the captured one if it is free; -1 if none is.
func (s *Session) Take(want uint64) int {
	if want < uint64(len(s.slots)) && !s.slots[want].busy {
		s.slots[want].busy = true
		return int(want)
	}
	for i := range s.slots {
		if !s.slots[i].busy {
			s.slots[i].busy = true
			return i
		}
	}
	return -1
}

// Give frees a slot.
func (s *Session) Give(i int) {
	if i < len(s.slots) {
		s.slots[i].busy = false
	}
}

// Abandon gives up a slot whose state is not known any more: it stays busy. It reports
// whether that was the last one.
func (s *Session) Abandon(i int) (last bool) {
	if i < len(s.slots) {
		s.slots[i].dead = true
	}
	for k := range s.slots {
		if !s.slots[k].dead {
			return false
		}
	}
	s.Lost = true
	return true
}

// Sequence moves the number of a slot on if the server has executed SEQUENCE.
func (s *Session) Sequence(i int, res *nfs4.CompoundRes) {
	if len(res.Ops) == 0 {
		return
	}
	if r, ok := res.Ops[0].Body.(*nfs4.SEQUENCE4res); ok && r.SrStatus == nfs4.NFS4_OK && i < len(s.slots) {
		s.slots[i].seq++
	}
}

// SessionOf is the session whose slot an op needs, and the captured slot; 0 if it
// needs none.
func SessionOf(o *plan.Op) (session int, slot uint64) {
	if o.Compound == nil || len(o.Compound.Ops) == 0 {
		return 0, 0
	}
	for i := range o.Compound.Ops[0].Args {
		if a := &o.Compound.Ops[0].Args[i]; a.Kind == plan.FieldSlot {
			return a.Ref, a.Value
		}
	}
	return 0, 0
}

// SessionFor is a live session of a client; 0 if there is none.
func (w *Clone) SessionFor(client int) int {
	for i := range w.Sessions {
		if w.Sessions[i].Bound && w.load.Tables.Sessions[i-1].Client == client {
			return i
		}
	}
	return 0
}

// LastSessionFor is the last live session of a client, of any client if that is -1; 0
// if there is none.
func (w *Clone) LastSessionFor(client int) (last int) {
	for i := range w.Sessions {
		if w.Sessions[i].Bound && (client < 0 || w.load.Tables.Sessions[i-1].Client == client) {
			last = i
		}
	}
	return last
}
