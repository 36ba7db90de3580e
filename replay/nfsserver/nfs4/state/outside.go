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
func (os *Outsiders) Ranges(h *Host) int {
	os.section.RLock()
	defer os.section.RUnlock()
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

// Outsiders are the byte ranges and shares that came by other protocols.
type Outsiders struct {
	section     *section
	files       *files
	budget      *budget
	reaper      *reaper
	delegations *Delegations
	waiters     *waiters
}

// Lock locks a range, or says who holds a conflicting one. It does not look at the grace
// period.
func (os *Outsiders) Lock(o *Outsider, key Key, r Range, write bool) (Held, Outcome) {
	os.section.Lock()
	defer os.section.Unlock()
	if by, out := os.mayLock(o, key, r, write); out != Done {
		return by, out
	}
	f := os.files.by[key]
	locks := &ranges{}
	if f != nil {
		locks = &f.locks
	}
	// A range may split another one, which makes two more.
	if !os.budget.fits(o.host.source, o.host.ranges, locks, 2, outsideCost) {
		return Held{}, Full
	}
	f, of := os.entry(o, key)
	n := len(f.locks.held)
	f.locks.add(o, r, write)
	os.count(o, f, of, len(f.locks.held)-n)
	return Held{}, Done
}

// Test says whether Lock would succeed.
func (os *Outsiders) Test(o *Outsider, key Key, r Range, write bool) (Held, Outcome) {
	os.section.Lock()
	defer os.section.Unlock()
	return os.mayLock(o, key, r, write)
}

func (os *Outsiders) mayLock(o *Outsider, key Key, r Range, write bool) (Held, Outcome) {
	f := os.files.by[key]
	if f == nil {
		return Held{}, Done
	}
	if h := os.reaper.conflict(f, o, nil, r, write); h != nil {
		by, _ := h.owner.(*Outsider)
		return Held{h.Range, h.write, by}, Conflict
	}
	// A client with a delegation may have locks that only it knows about.
	if os.delegations.recallFrom(nil, f, write) {
		return Held{}, Recalling
	}
	return Held{}, Done
}

// Holders calls f with the Outsiders whose ranges keep one from being locked, until f
// returns false; one may come several times. It returns how many ranges it has looked at.
func (os *Outsiders) Holders(o *Outsider, key Key, r Range, write bool, f func(*Outsider) bool) (looked int) {
	os.section.RLock()
	defer os.section.RUnlock()
	file := os.files.by[key]
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

// Unlock unlocks a range. It fails only if that would split a range, and there is no room
// for one more.
func (os *Outsiders) Unlock(o *Outsider, key Key, r Range) Outcome {
	os.section.Lock()
	defer os.section.Unlock()
	f, of := os.files.by[key], o.files[key]
	if f == nil || of == nil || of.ranges == 0 {
		return Done
	}
	if !os.budget.fits(o.host.source, o.host.ranges, &f.locks, 1, 0) && f.locks.splits(o, r) {
		return Full
	}
	n := len(f.locks.held)
	f.locks.remove(o, r)
	os.count(o, f, of, len(f.locks.held)-n)
	os.waiters.freed(key)
	return Done
}

// Share reserves a file (share reservation): access and deny are bits as in OPEN. It
// replaces what the Outsider has reserved before.
func (os *Outsiders) Share(o *Outsider, key Key, access, deny uint32) Outcome {
	os.section.Lock()
	defer os.section.Unlock()
	f, of := os.files.by[key], o.files[key]
	had := of != nil && of.shared
	if had {
		f.count(of.access, of.denies, -1)
	}
	taken := func() bool { return f != nil && f.conflicts(access, deny) }
	if taken() {
		os.reaper.dropExpired(f)
		f = os.files.by[key]
	}
	out := Done
	switch {
	case taken():
		out = Conflict
	case f != nil && os.delegations.recallFrom(nil, f, access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0 || deny != 0):
		out = Recalling
	case !had && os.budget.room(o.host.source) < outsideCost:
		out = Full
	}
	if out != Done {
		if had {
			f.count(of.access, of.denies, 1)
		}
		return out
	}
	f, of = os.entry(o, key)
	of.shared, of.access, of.denies = true, access, deny
	f.count(access, deny, 1)
	return Done
}

// Unshare ends a share reservation.
func (os *Outsiders) Unshare(o *Outsider, key Key) {
	os.section.Lock()
	defer os.section.Unlock()
	if of := o.files[key]; of != nil && of.shared {
		f := os.files.by[key]
		f.count(of.access, of.denies, -1)
		of.shared, of.access, of.denies = false, 0, 0
		os.count(o, f, of, 0)
	}
}

// Drop ends all that an Outsider holds.
func (os *Outsiders) Drop(o *Outsider) {
	os.section.Lock()
	defer os.section.Unlock()
	for key, of := range o.files {
		f := os.files.by[key]
		if of.shared {
			f.count(of.access, of.denies, -1)
			of.shared = false
		}
		n := f.locks.drop(o)
		os.count(o, f, of, -n)
		os.waiters.freed(key)
	}
}

// Holds reports whether an Outsider holds anything.
func (os *Outsiders) Holds(o *Outsider) bool {
	os.section.RLock()
	defer os.section.RUnlock()
	return len(o.files) > 0
}

// entry finds or makes the entries of an Outsider's file. There is room for them.
func (os *Outsiders) entry(o *Outsider, key Key) (*file, *outsideFile) {
	f := os.files.get(key)
	of := o.files[key]
	if of == nil {
		of = &outsideFile{}
		if o.files == nil {
			o.files = map[Key]*outsideFile{}
		}
		o.files[key] = of
		f.outside++
		os.budget.take(o.host.source, outsideCost)
	}
	return f, of
}

// count counts n more byte ranges, and forgets entries that stand for nothing.
func (os *Outsiders) count(o *Outsider, f *file, of *outsideFile, n int) {
	of.ranges += n
	o.host.ranges += n
	os.budget.countRanges(o.host.source, n)
	if of.ranges > 0 || of.shared {
		return
	}
	delete(o.files, f.key)
	f.outside--
	os.budget.give(o.host.source, outsideCost)
	os.files.forget(f)
}

// Charge counts n bytes that something beside the Table keeps for a source, if there is room for
// them. Refund is the reverse.
func (os *Outsiders) Charge(from Source, n int) bool {
	os.section.Lock()
	defer os.section.Unlock()
	return os.budget.take(from, n)
}

// Refund is the reverse of Charge.
func (os *Outsiders) Refund(from Source, n int) {
	os.section.Lock()
	defer os.section.Unlock()
	os.budget.give(from, n)
}

// OnFree has f called, without a lock, when byte ranges or delegations of a file that somebody
// waits for are given up. f does not call the Table. It is set before the first call.
func (os *Outsiders) OnFree(f func(Key)) { os.waiters.tell = f }

// Wait says that n more are waiting for byte ranges of a file.
func (os *Outsiders) Wait(key Key, n int) {
	os.section.Lock()
	defer os.section.Unlock()
	os.waiters.add(key, n)
}

// Charged is how many bytes are counted of all sources.
func (os *Outsiders) Charged() int {
	os.section.RLock()
	defer os.section.RUnlock()
	return os.budget.used
}
