package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// locks is what one clone's server has said about the locks of this run, and in which of them it
// differs from the captured one. The zero value is ready for use.
type locks struct {
	files map[int]*fileLocks
	kept  int
	epoch int // clients that are made anew lose their locks: those of earlier epochs may be gone
}

// fileLocks are lists of at most maxLocks notes.
type fileLocks struct {
	held    []lockNote // granted here, and not given up
	waiting []lockNote // asked for, and told to wait, here or in the capture
	apart   []lockNote // held here or in the capture, and not in the other
}

// lockNote is a range of an owner.
type lockNote struct {
	lockOwner
	byteRange
	exclusive bool
	call      verdict.Call // that asked for it
	only      bool         // of apart: it is held here
	ending    bool         // of held: something was sent that may end it
	epoch     int
	since     time.Time
}

const (
	// maxLocks bounds each list of a file, so that time does not grow with the square of the locks.
	maxLocks = 256
	// maxLockNotes bounds all lists of a clone.
	maxLockNotes = 1 << 16
	// maxLockCalls is how many calls about locks that were in flight together with one are read again to explain it, the
	// latest ones: a session rarely has more slots.
	maxLockCalls = 128
	// shortLease is how long a lock of NFSv4 is surely held if its client is silent: servers have longer leases.
	shortLease = 5 * time.Second
)

func (l *locks) file(object int) *fileLocks {
	f := l.files[object]
	if f == nil {
		if l.files == nil {
			l.files = map[int]*fileLocks{}
		}
		f = &fileLocks{}
		l.files[object] = f
	}
	return f
}

func (l *locks) add(list *[]lockNote, n lockNote) {
	if len(*list) < maxLocks && l.kept < maxLockNotes {
		*list = append(*list, n)
		l.kept++
	}
}

// drop takes a range of an owner out of a list. What is left of larger ranges stays.
func (l *locks) drop(list *[]lockNote, a *lockAct) {
	kept, rest := (*list)[:0], []lockNote(nil)
	for _, n := range *list {
		if !n.same(a.lockOwner) || !n.overlaps(a.byteRange) {
			kept = append(kept, n)
			continue
		}
		l.kept--
		if before := n; n.from < a.from {
			before.to = a.from - 1
			rest = append(rest, before)
		}
		if after := n; n.to > a.to {
			after.from = a.to + 1
			rest = append(rest, after)
		}
	}
	*list = kept
	for _, n := range rest {
		l.add(list, n)
	}
}

// tidy forgets a file of which nothing is noted.
func (l *locks) tidy(object int) {
	if f := l.files[object]; f != nil && len(f.held)+len(f.waiting)+len(f.apart) == 0 {
		delete(l.files, object)
	}
}

// lockedOtherwise explains the outcome of a call about a lock: by a call of another owner about the same
// bytes that was under way together with it in the capture, by one that waits for the same bytes, since the server
// decides who gets a lock first, and by a lock that, because of these, its owner has only here or only in the
// capture.
func lockedOtherwise(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	a, decided, ok := j.lockDiffers(r, v)
	if !ok {
		return verdict.Reason{}, false
	}
	f := j.history(r.Clone).locks.files[a.object]
	if f != nil {
		for i := range f.apart {
			n := &f.apart[i]
			if n.overlaps(a.byteRange) && (n.same(a.lockOwner) || decided && a.does != gives) {
				code := verdict.Unhappened
				if n.only {
					code = verdict.OnlyHere
				}
				return verdict.Reason{Code: code, Call: n.call}, true
			}
		}
	}
	if !decided || a.does == gives {
		return verdict.Reason{}, false
	}
	if f != nil {
		for i := range f.waiting {
			if n := &f.waiting[i]; n.overlaps(a.byteRange) && !n.same(a.lockOwner) && (n.exclusive || a.exclusive) {
				return verdict.Reason{Code: verdict.LockWaits, Call: n.call}, true
			}
		}
	}
	// A lock that was refused in the capture was held by somebody else, and not by an owner who was refused, too.
	was, _ := statusWas(r.Op, a.at)
	decides := func(o *plan.Op, b *lockAct) bool {
		code, known := statusWas(o, b.at)
		return was == 0 || !known || code == 0 || b.waits && code == uint32(nlm.NLM4_BLOCKED)
	}
	why, left := verdict.Reason{}, maxLockCalls
	j.moments.together(r.Op, changeable{a.object, true}, func(o *plan.Op) bool {
		if slices.ContainsFunc(j.moments.locks.acts(o), func(b lockAct) bool { return b.excludes(&a) && decides(o, &b) }) {
			why = verdict.Reason{Code: verdict.LocksTogether, Was: r.Op.What, Call: callOf(o)}
		}
		left--
		return why.Code == verdict.None && left > 0
	})
	return why, why.Code != verdict.None
}

// lockDiffers finds the act whose outcome is what differs. decided says that both servers decided by who has which
// lock.
func (j *Judge) lockDiffers(r *Reply, v *verdict.Judgement) (a lockAct, decided, ok bool) {
	x := r.Op.Expect
	if x == nil || x.RPC != "" || r.RPC != "" {
		return a, false, false
	}
	code, _ := StatusOf(r.Result)
	for _, a = range j.moments.locks.acts(r.Op) {
		was, before := statusWas(r.Op, a.at)
		now, executed := statusNow(r, a.at)
		if !before || !executed || was != x.Status || now != code || was == 0 && now == 0 {
			continue // what differs is not this act, or not only this one
		}
		decided = (was == 0 || lockRefused(r.Op, was)) && (now == 0 || lockRefused(r.Op, now))
		if was == now && (!decided || !aboutOnly(v, opName(r.Op, a.at))) {
			continue
		}
		return a, decided, true
	}
	return a, false, false
}

// aboutOnly reports whether all differences are in the results of an operation: in who has the lock.
func aboutOnly(v *verdict.Judgement, operation string) bool {
	return !slices.ContainsFunc(v.Reasons, func(d verdict.Reason) bool { return differs(d.Code) && !strings.HasPrefix(d.At.Path, operation) })
}

// lockRefused reports whether a status says that somebody else has the lock.
func lockRefused(o *plan.Op, code uint32) bool {
	if o.Compound == nil {
		switch nlm.Nlm4Stats(code) {
		case nlm.NLM4_DENIED, nlm.NLM4_BLOCKED, nlm.NLM4_DEADLCK:
			return true
		}
		return false
	}
	switch nfs4.Nfsstat4(code) {
	case nfs4.NFS4ERR_DENIED, nfs4.NFS4ERR_DEADLOCK:
		return true
	}
	return false
}

// statusWas is the captured status of operation at, and whether it was executed.
func statusWas(o *plan.Op, at int) (code uint32, executed bool) {
	switch x := o.Expect; {
	case x == nil || x.RPC != "":
		return 0, false
	case o.Compound == nil:
		return x.Status, true
	case at < len(x.Ops):
		return x.Ops[at], true
	}
	return 0, false
}

// statusNow is its status here.
func statusNow(r *Reply, at int) (code uint32, executed bool) {
	switch c, ok := r.Result.(*nfs4.CompoundRes); {
	case r.RPC != "" || r.Result == nil:
		return 0, false
	case !ok:
		code, _ = StatusOf(r.Result)
		return code, r.Op.Compound == nil
	case at < len(c.Ops):
		code, _, _ = c.Ops[at].Status()
		return code, true
	}
	return 0, false
}

// locked takes in what a reply says about locks. Two owners that both have a lock which excludes the other's are a
// fault of the server, whatever explains who of them got it first.
func (j *Judge) locked(v *verdict.Judgement, r *Reply) {
	l := &j.history(r.Clone).locks
	if r.Op.Role == plan.Sessions {
		l.epoch++
	}
	for _, a := range j.moments.locks.acts(r.Op) {
		now, executed := statusNow(r, a.at)
		if a.does == tests || !executed {
			continue
		}
		was, before := statusWas(r.Op, a.at)
		blocked := a.waits && (now == uint32(nlm.NLM4_BLOCKED) || before && was == uint32(nlm.NLM4_BLOCKED))
		l.took(r, &a, now == 0, before, was == 0, blocked, func(n *lockNote) {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.LockedTwice, Call: n.call})
		})
	}
}

// took applies an act that was executed. twice is called for a lock that excludes it and is held.
func (l *locks) took(r *Reply, a *lockAct, here, captured, there, blocked bool, twice func(*lockNote)) {
	f := l.file(a.object)
	defer l.tidy(a.object)
	n := lockNote{lockOwner: a.lockOwner, byteRange: a.byteRange, exclusive: a.exclusive, call: callOf(r.Op), epoch: l.epoch, since: r.Replied}
	if here || a.does == gives {
		l.drop(&f.waiting, a)
	}
	if here && a.does == takes {
		if h := l.holder(f, a, r.Replied); h != nil {
			twice(h)
		}
	}
	if here {
		l.drop(&f.held, a)
		if a.does == takes {
			l.add(&f.held, n)
		}
	}
	if blocked {
		l.drop(&f.waiting, a)
		l.add(&f.waiting, n)
	}
	switch {
	case !captured || a.cancels:
	case here && there, a.does == gives && (here || there):
		l.drop(&f.apart, a)
	case here != there:
		l.drop(&f.apart, a)
		n.only = here
		l.add(&f.apart, n)
	}
}

// holder is another owner who surely has a lock that excludes one which was given; nil if there is none.
func (l *locks) holder(f *fileLocks, a *lockAct, given time.Time) *lockNote {
	for i := range f.held {
		h := &f.held[i]
		lives := h.epoch == l.epoch && (h.client == 0 || given.Sub(h.since) < shortLease)
		known := h.owner != nobody && a.owner != nobody
		if lives && known && !h.ending && h.overlaps(a.byteRange) && !h.same(a.lockOwner) && (h.exclusive || a.exclusive) {
			return h
		}
	}
	return nil
}

// Issued tells the judge of a call that is about to be sent: the server may execute it any time from now on.
func (j *Judge) Issued(clone int, o *plan.Op) {
	h := j.clones[clone]
	if h == nil || len(h.locks.files) == 0 {
		return
	}
	for _, a := range j.moments.locks.acts(o) {
		f := h.locks.files[a.object]
		if f == nil || a.does == tests {
			continue
		}
		for i := range f.held {
			// An owner that the plan does not have may be any.
			if n := &f.held[i]; n.overlaps(a.byteRange) && (n.same(a.lockOwner) || n.owner == nobody || a.owner == nobody) {
				n.ending = true
			}
		}
	}
}

// unsent notes what a call that is not sent does not do about locks.
func (j *Judge) unsent(clone int, o *plan.Op) {
	h := j.clones[clone]
	for _, a := range j.moments.locks.acts(o) {
		if was, before := statusWas(o, a.at); !before || was != 0 {
			continue
		}
		switch {
		case a.does == takes:
			l := &j.history(clone).locks
			l.add(&l.file(a.object).apart, lockNote{lockOwner: a.lockOwner, byteRange: a.byteRange, exclusive: a.exclusive, call: callOf(o), epoch: l.epoch})
		case a.does == gives && h != nil && h.locks.files[a.object] != nil:
			h.locks.drop(&h.locks.files[a.object].apart, &a)
			h.locks.tidy(a.object)
		}
	}
}

// Unlocked tells the judge that a lock which an op has taken only here was given back.
func (j *Judge) Unlocked(clone int, o *plan.Op) {
	h := j.clones[clone]
	if h == nil {
		return
	}
	for _, a := range j.moments.locks.acts(o) {
		if f := h.locks.files[a.object]; f != nil && a.does == takes {
			h.locks.drop(&f.held, &a)
			h.locks.drop(&f.apart, &a)
			h.locks.tidy(a.object)
		}
	}
}
