package run

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// world holds what the symbols of a plan stand for on the live server, for one
// clone. IDs count from 1; index 0 is unused.
type world struct {
	number   int
	objects  []object
	states   []state
	clients  []clientState
	sessions []session
	owners   []uint32 // next seqid
	cookies  map[int]*listing
	byOther  map[[12]byte]int // live state ids to states
	base     []byte           // handle of the directory given
	root     []byte           // what stands for the captured server's root; nil: the root
	names    map[int]string   // live names of the base and of what lies above it
	noRoot   bool             // nothing stands for the captured server's root
	spoilt   map[int]*plan.Op // objects that lack what this op would have done
}

type object struct {
	handle []byte
	ctime  [8]byte // nfstime3
	timed  bool
}

type state struct {
	other  [12]byte
	seqid  uint32
	bound  bool
	closed bool
	// refused says that the live server did not give what the captured one
	// gave: a delegation, as a rule.
	refused bool
	// unconfirmed says that the server wants OPEN_CONFIRM (NFSv4.0).
	unconfirmed bool
}

type clientState struct {
	id        uint64
	bound     bool
	confirm   [8]byte
	createSeq uint32
	verifier  [8]byte
	owner     []byte
}

type session struct {
	id    [16]byte
	bound bool
	lost  bool
	slots []slot
	wait  []*flight // calls that wait for a slot
}

type slot struct {
	seq  uint32 // next
	busy bool
	dead bool // a call in it had no reply: whether it was done is not known
}

// vacant reports whether a slot is free.
func (s *session) vacant() bool {
	for i := range s.slots {
		if !s.slots[i].busy {
			return true
		}
	}
	return false
}

// listing is what a READDIR gave that another one goes on with.
type listing struct {
	cookies  []uint64
	verifier [8]byte
}

// errUnbound says that a symbol has no value, because the call that would have
// given it one failed or was not sent.
type errUnbound struct {
	kind plan.FieldKind
	ref  int
	why  string
}

func (e *errUnbound) Error() string {
	if e.why != "" {
		return e.why
	}
	return fmt.Sprintf("%s %d has no value on this server", e.kind, e.ref)
}

func newWorld(w *Workload, number int, tag string) *world {
	t := &w.Tables
	d := &world{
		number:   number,
		objects:  make([]object, len(t.Objects)+1),
		states:   make([]state, len(t.States)+1),
		clients:  make([]clientState, len(t.Clients)+1),
		sessions: make([]session, len(t.Sessions)+1),
		owners:   make([]uint32, len(t.Owners)+1),
		cookies:  map[int]*listing{},
		byOther:  map[[12]byte]int{},
		names:    map[int]string{},
		spoilt:   map[int]*plan.Op{},
	}
	for i := range t.Clients {
		c := &d.clients[i+1]
		_, _ = rand.Read(c.verifier[:]) // cannot fail (crypto/rand)
		// A name of its own for each run, so that nobody else's state is
		// taken for ours, nor ours for that of an earlier run.
		c.owner = fmt.Appendf(ownerPrefix(tag), "%d/%d %s", number, i+1, t.Clients[i].Owner)
		if len(c.owner) > nfs4.NFS4_OPAQUE_LIMIT {
			c.owner = c.owner[:nfs4.NFS4_OPAQUE_LIMIT]
		}
	}
	return d
}

// resolver gives symbols their values for one call.
type resolver struct {
	*engine
	w *world
	f *flight
}

// Append implements plan.Resolver.
func (r *resolver) Append(dst []byte, o *plan.Op, f *plan.Field) ([]byte, error) {
	w := r.w
	switch f.Kind {
	case plan.FieldName:
		return xdr.AppendOpaque(dst, r.name(f)), nil
	case plan.FieldHandle:
		h := w.objects[f.Ref].handle
		if h == nil {
			return dst, &errUnbound{kind: f.Kind, ref: f.Ref, why: r.noHandle(f.Ref)}
		}
		return xdr.AppendOpaque(dst, h), nil
	case plan.FieldState:
		return r.state(dst, f)
	case plan.FieldClient:
		c := &w.clients[f.Ref]
		if !c.bound {
			return dst, &errUnbound{kind: f.Kind, ref: f.Ref}
		}
		return xdr.AppendUint64(dst, c.id), nil
	case plan.FieldVerifier:
		return append(dst, w.clients[f.Ref].verifier[:]...), nil
	case plan.FieldOwnerID:
		return xdr.AppendOpaque(dst, w.clients[f.Ref].owner), nil
	case plan.FieldConfirm:
		return append(dst, w.clients[f.Ref].confirm[:]...), nil
	case plan.FieldCreateSeq:
		return xdr.AppendUint32(dst, w.clients[f.Ref].createSeq), nil
	case plan.FieldSession:
		s := &w.sessions[f.Ref]
		if !s.bound {
			return dst, &errUnbound{kind: f.Kind, ref: f.Ref}
		}
		return append(dst, s.id[:]...), nil
	case plan.FieldSequence, plan.FieldSlot, plan.FieldHighest:
		return r.slot(dst, f)
	case plan.FieldSeqid:
		return xdr.AppendUint32(dst, w.owners[f.Ref]), nil
	case plan.FieldCookie:
		return r.cookie(dst, f)
	case plan.FieldCookieVerf:
		var v [8]byte
		if l := w.cookies[f.Op]; l != nil {
			v = l.verifier
		}
		return append(dst, v[:]...), nil
	case plan.FieldCtime:
		b := &w.objects[f.Ref]
		if !b.timed {
			return dst, &errUnbound{kind: f.Kind, ref: f.Ref, why: "the object's time of last change is not known"}
		}
		return append(dst, b.ctime[:]...), nil
	case plan.FieldCallback:
		return r.appendLocation(dst), nil
	}
	return dst, fmt.Errorf("%w %q", plan.ErrField, f.Kind)
}

// name is a component: that of the base, and those above it, are the live ones'.
func (r *resolver) name(f *plan.Field) []byte {
	if n, ok := r.w.names[f.Ref]; ok && f.Ref != 0 {
		return []byte(n)
	}
	return f.Opaque()
}

// noHandle says why an object has no handle here.
func (r *resolver) noHandle(ref int) string {
	o := &r.load.Tables.Objects[ref-1]
	switch o.Origin {
	case plan.Above:
		return "it lies above the base, which this server does not have"
	case plan.Stale:
		return "the captured server refused its handle, too"
	}
	return fmt.Sprintf("object %d (%s) has no handle on this server", ref, o.Path)
}

// state appends a state id. Where this server gave no delegation, an open of
// the same file serves, or the anonymous state id.
func (r *resolver) state(dst []byte, f *plan.Field) ([]byte, error) {
	s := &r.w.states[f.Ref]
	if !s.bound {
		t := &r.load.Tables.States[f.Ref-1]
		if t.Kind != plan.DelegationState && !s.refused {
			return dst, &errUnbound{kind: f.Kind, ref: f.Ref}
		}
		r.f.note = noteNoDelegation
		// To READ, WRITE and SETATTR the anonymous one will do, whatever becomes
		// of opens at the same time.
		switch r.opcode(f) {
		case nfs4.OP_READ, nfs4.OP_WRITE, nfs4.OP_SETATTR:
			return append(dst, make([]byte, 16)...), nil
		}
		if s = r.w.substitute(r.load, t); s == nil {
			return append(dst, make([]byte, 16)...), nil
		}
	}
	seqid := s.seqid - uint32(f.Value)
	if r.f.newest {
		seqid = s.seqid
	}
	if f.Zero {
		seqid = 0
	}
	dst = xdr.AppendUint32(dst, seqid)
	return append(dst, s.other[:]...), nil
}

// opcode is the operation of a COMPOUND that a field stands in.
func (r *resolver) opcode(f *plan.Field) nfs4.NfsOpnum4 {
	c := r.f.op.Compound
	for i := range c.Ops {
		for k := range c.Ops[i].Args {
			if &c.Ops[i].Args[k] == f {
				return nfs4.NfsOpnum4(c.Ops[i].Op)
			}
		}
	}
	return 0
}

// substitute finds an open of the same file by the same client.
func (w *world) substitute(load *Workload, t *plan.State) *state {
	for i := range load.Tables.States {
		o := &load.Tables.States[i]
		if o.Kind == plan.OpenState && o.Object == t.Object && o.Client == t.Client && w.states[i+1].bound && !w.states[i+1].closed {
			return &w.states[i+1]
		}
	}
	return nil
}

func (r *resolver) slot(dst []byte, f *plan.Field) ([]byte, error) {
	s := &r.w.sessions[f.Ref]
	if r.f.session != f.Ref || r.f.slot < 0 || r.f.slot >= len(s.slots) {
		return dst, errors.New("a call in no slot")
	}
	switch f.Kind {
	case plan.FieldSequence:
		return xdr.AppendUint32(dst, s.slots[r.f.slot].seq), nil
	case plan.FieldSlot:
		return xdr.AppendUint32(dst, uint32(r.f.slot)), nil
	}
	return xdr.AppendUint32(dst, min(uint32(len(s.slots)-1), max(uint32(f.Value), uint32(r.f.slot)))), nil
}

func (r *resolver) cookie(dst []byte, f *plan.Field) ([]byte, error) {
	l := r.w.cookies[f.Op]
	if l == nil || len(l.cookies) == 0 {
		return dst, &errUnbound{kind: f.Kind, ref: f.Op, why: fmt.Sprintf("READDIR %d, which this one continues, gave no entries", f.Op)}
	}
	i := len(l.cookies) - 1
	if !f.Zero && f.Value < uint64(i) {
		i = int(f.Value)
	}
	return xdr.AppendUint64(dst, l.cookies[i]), nil
}

// Data implements plan.Resolver.
func (r *resolver) Data(_ *plan.Op, f *plan.Field) ([]byte, error) {
	p := f.Data
	switch {
	case p == nil:
		return nil, nil
	case p.Text != nil:
		return p.Text, nil
	case p.Length > maxIO:
		return nil, fmt.Errorf("%d bytes in one call are too many", p.Length)
	}
	b, err := r.f.conn.pool.get(int(p.Length))
	if err != nil {
		return nil, err
	}
	r.f.lent = append(r.f.lent, b)
	return b, r.load.payload(b, p)
}

// payload fills b with what a WRITE carries.
func (w *Workload) payload(b []byte, p *plan.Payload) error {
	switch p.Source {
	case plan.Captured:
		if w.Data == nil {
			return errors.New("the plan names captured data, but its data file is not there")
		}
		if _, err := w.Data.ReadAt(b, p.At); err != nil {
			return fmt.Errorf("data file: %w", err)
		}
	case plan.Pattern:
		plan.FillPattern(b, p.Object, p.Offset)
	default:
		clear(b)
	}
	return nil
}

// learnState takes in a state id of a reply.
func (w *world) learnState(s nfs4.Stateid4) {
	if i, ok := w.byOther[s.Other]; ok {
		// A reply that was overtaken has an older seqid.
		if st := &w.states[i]; int32(s.Seqid-st.seqid) > 0 || s.Seqid == 1 && st.seqid == 0xffffffff {
			st.seqid = s.Seqid
		}
	}
}

func (w *world) bindState(ref int, s nfs4.Stateid4) {
	if s == (nfs4.Stateid4{}) {
		return
	}
	st := &w.states[ref]
	if st.bound && st.other == s.Other {
		w.learnState(s)
		return
	}
	*st = state{other: s.Other, seqid: s.Seqid, bound: true}
	w.byOther[s.Other] = ref
}

// bindSession starts a session's slots.
func (w *world) bindSession(ref int, id [16]byte, slots uint32) {
	s := &w.sessions[ref]
	*s = session{id: id, bound: true, slots: make([]slot, max(1, min(slots, maxSlots))), wait: s.wait}
	for i := range s.slots {
		s.slots[i].seq = 1
	}
}

// take finds a slot: the captured one if it can be had.
func (s *session) take(want uint64) int {
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

// putCtime keeps the time of last change for guards.
func (w *world) putCtime(ref int, sec, nsec uint32) {
	if ref <= 0 || ref >= len(w.objects) {
		return
	}
	o := &w.objects[ref]
	binary.BigEndian.PutUint32(o.ctime[:], sec)
	binary.BigEndian.PutUint32(o.ctime[4:], nsec)
	o.timed = true
}

// Limits.
const (
	maxSlots = 4096
	maxIO    = 64 << 20 // bytes of data of one call
)
