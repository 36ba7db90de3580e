package state

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// Byte ranges and shares of clients that have no record here: processes on NFSv3 hosts, which
// lock by NLM. They stand in the same lists as those of NFSv4, so that each side sees the
// other's.

// holder holds byte ranges of a file: a *lockOwner or an *Outsider.
type holder interface {
	// record is the client that a holder belongs to; nil for an Outsider.
	record() *Client
}

func (o *lockOwner) record() *Client { return o.client }
func (*Outsider) record() *Client    { return nil }

// Host is where Outsiders are. Its fields are the Table's.
type Host struct {
	source Source
	ranges int // locked by all its Outsiders
}

// NewHost returns a Host at an address.
func NewHost(from Source) *Host { return &Host{source: from} }

// Ranges is how many byte ranges the Outsiders of a host hold.
func (t *Table) Ranges(h *Host) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return h.ranges
}

// Outsider is an owner of byte ranges and shares that came by another protocol.
type Outsider struct {
	host *Host
	// Label is for the user of the Table, who finds it in Held.
	Label any
	files map[Key]*outsideFile
}

// outsideFile is what an Outsider has of a file.
type outsideFile struct {
	ranges         int
	shared         bool
	access, denies uint32
}

// NewOutsider returns an Outsider that holds nothing.
func NewOutsider(h *Host, label any) *Outsider { return &Outsider{host: h, Label: label} }

// Held is a byte range that is locked.
type Held struct {
	Range
	Write bool
	By    *Outsider // nil: a client of NFSv4
}

// Outcome is the result of an operation of an Outsider.
type Outcome uint8

// Outcomes.
const (
	Done      Outcome = iota
	Conflict          // others hold a lock or a share
	Recalling         // others have a delegation, which they have been asked to return
	Full              // a limit is reached
)

// LockOutside locks a range, or says who holds a conflicting one. It does not look at the grace
// period.
func (t *Table) LockOutside(o *Outsider, key Key, r Range, write bool) (Held, Outcome) {
	t.mu.Lock()
	defer t.unlock()
	if by, out := t.mayLockOutside(o, key, r, write); out != Done {
		return by, out
	}
	f := t.files[key]
	n := 0
	if f != nil {
		n = len(f.locks.held)
	}
	// A range may split another one, which makes two more.
	if o.host.ranges+1 >= t.limits.Ranges || n+1 >= t.limits.FileRanges || t.memory.room(o.host.source) < 2*rangeCost+outsideCost {
		return Held{}, Full
	}
	f, of := t.outside(o, key)
	f.locks.add(o, r, write)
	t.countOutside(o, f, of, len(f.locks.held)-n)
	return Held{}, Done
}

// TestOutside says whether LockOutside would succeed.
func (t *Table) TestOutside(o *Outsider, key Key, r Range, write bool) (Held, Outcome) {
	t.mu.Lock()
	defer t.unlock()
	return t.mayLockOutside(o, key, r, write)
}

func (t *Table) mayLockOutside(o *Outsider, key Key, r Range, write bool) (Held, Outcome) {
	f := t.files[key]
	if f == nil {
		return Held{}, Done
	}
	h := f.locks.conflict(o, r, write)
	if h != nil && h.owner.record() != nil && t.expired(h.owner.record(), t.now()) {
		t.dropExpired(f)
		h = f.locks.conflict(o, r, write)
	}
	if h != nil {
		by, _ := h.owner.(*Outsider)
		return Held{h.Range, h.write, by}, Conflict
	}
	// A client with a delegation may have locks that only it knows about.
	if t.recallFrom(nil, f, write) {
		return Held{}, Recalling
	}
	return Held{}, Done
}

// HoldersOutside calls f with the Outsiders whose ranges keep one from being locked, until f
// returns false; one may come several times. It returns how many ranges it has looked at.
func (t *Table) HoldersOutside(o *Outsider, key Key, r Range, write bool, f func(*Outsider) bool) (looked int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	file := t.files[key]
	if file == nil {
		return 0
	}
	for i := range file.locks.held {
		h := &file.locks.held[i]
		looked++
		if by, ok := h.owner.(*Outsider); ok && by != o && (write || h.write) && h.overlaps(r) && !f(by) {
			break
		}
	}
	return looked
}

// UnlockOutside unlocks a range. It fails only if that would split a range, and there is no room
// for one more.
func (t *Table) UnlockOutside(o *Outsider, key Key, r Range) Outcome {
	t.mu.Lock()
	defer t.unlock()
	f, of := t.files[key], o.files[key]
	if f == nil || of == nil || of.ranges == 0 {
		return Done
	}
	n := len(f.locks.held)
	full := o.host.ranges >= t.limits.Ranges || n >= t.limits.FileRanges || t.memory.room(o.host.source) < rangeCost
	if full && f.locks.splits(o, r) {
		return Full
	}
	f.locks.remove(o, r)
	t.countOutside(o, f, of, len(f.locks.held)-n)
	t.freed(key)
	return Done
}

// ShareOutside reserves a file (share reservation): access and deny are bits as in OPEN. It
// replaces what the Outsider has reserved before.
func (t *Table) ShareOutside(o *Outsider, key Key, access, deny uint32) Outcome {
	t.mu.Lock()
	defer t.unlock()
	f, of := t.files[key], o.files[key]
	had := of != nil && of.shared
	if had {
		f.count(of.access, of.denies, -1)
	}
	taken := func() bool { return f != nil && f.conflicts(access, deny) }
	if taken() {
		t.dropExpired(f)
		f = t.files[key]
	}
	out := Done
	switch {
	case taken():
		out = Conflict
	case f != nil && t.recallFrom(nil, f, access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0 || deny != 0):
		out = Recalling
	case !had && t.memory.room(o.host.source) < outsideCost:
		out = Full
	}
	if out != Done {
		if had {
			f.count(of.access, of.denies, 1)
		}
		return out
	}
	f, of = t.outside(o, key)
	of.shared, of.access, of.denies = true, access, deny
	f.count(access, deny, 1)
	return Done
}

// UnshareOutside ends a share reservation.
func (t *Table) UnshareOutside(o *Outsider, key Key) {
	t.mu.Lock()
	defer t.unlock()
	if of := o.files[key]; of != nil && of.shared {
		f := t.files[key]
		f.count(of.access, of.denies, -1)
		of.shared, of.access, of.denies = false, 0, 0
		t.countOutside(o, f, of, 0)
	}
}

// DropOutside ends all that an Outsider holds.
func (t *Table) DropOutside(o *Outsider) {
	t.mu.Lock()
	defer t.unlock()
	for key, of := range o.files {
		f := t.files[key]
		if of.shared {
			f.count(of.access, of.denies, -1)
			of.shared = false
		}
		n := f.locks.drop(o)
		t.countOutside(o, f, of, -n)
		t.freed(key)
	}
}

// HoldsOutside reports whether an Outsider holds anything.
func (t *Table) HoldsOutside(o *Outsider) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(o.files) > 0
}

// outside finds or makes the entries of an Outsider's file. There is room for them.
func (t *Table) outside(o *Outsider, key Key) (*file, *outsideFile) {
	f := t.files[key]
	if f == nil {
		f = &file{key: key, opens: map[*open]struct{}{}}
		t.files[key] = f
	}
	of := o.files[key]
	if of == nil {
		of = &outsideFile{}
		if o.files == nil {
			o.files = map[Key]*outsideFile{}
		}
		o.files[key] = of
		f.outside++
		t.memory.take(o.host.source, outsideCost)
	}
	return f, of
}

// countOutside counts n more byte ranges, and forgets entries that stand for nothing.
func (t *Table) countOutside(o *Outsider, f *file, of *outsideFile, n int) {
	of.ranges += n
	o.host.ranges += n
	if n < 0 {
		t.memory.give(o.host.source, -n*rangeCost)
	} else {
		t.memory.take(o.host.source, n*rangeCost)
	}
	if of.ranges > 0 || of.shared {
		return
	}
	delete(o.files, f.key)
	f.outside--
	t.memory.give(o.host.source, outsideCost)
	t.forgetFile(f)
}

// Charge counts n bytes that something beside the Table keeps for a source, if there is room for
// them. Refund is the reverse.
func (t *Table) Charge(from Source, n int) bool {
	t.mu.Lock()
	defer t.unlock()
	return t.memory.take(from, n)
}

// Refund is the reverse of Charge.
func (t *Table) Refund(from Source, n int) {
	t.mu.Lock()
	defer t.unlock()
	t.memory.give(from, n)
}

// OnFree has f called, without a lock, when byte ranges or delegations of a file that somebody
// waits for are given up. f does not call the Table. It is set before the first call.
func (t *Table) OnFree(f func(Key)) { t.onFree = f }

// Wait says that n more are waiting for byte ranges of a file.
func (t *Table) Wait(key Key, n int) {
	t.mu.Lock()
	defer t.unlock()
	if t.waited == nil {
		t.waited = map[Key]int{}
	}
	if t.waited[key] += n; t.waited[key] <= 0 {
		delete(t.waited, key)
	}
}

// freed notes that a byte range or a delegation of a file was given up. mu is held.
func (t *Table) freed(key Key) {
	if t.onFree != nil && t.waited[key] > 0 {
		t.free = append(t.free, key)
	}
}

// Charged is how many bytes are counted of all sources.
func (t *Table) Charged() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.memory.used
}
