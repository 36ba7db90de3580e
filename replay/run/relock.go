package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Locks of NFSv3 have no lease: a server keeps what an interrupted run holds. The run that goes on
// asks for each lock again, which changes nothing where it is still held, takes it where the server has
// forgotten it, and tells the server on which connection its calls reach this run.

// SavedLock is what an owner of locks of NFSv3 has of a file, or waits for.
type SavedLock struct {
	Clone      int          `json:"clone,omitempty"`
	Owner      int          `json:"owner"`
	Object     int          `json:"object"`
	Connection int          `json:"connection"`
	Credential int          `json:"credential,omitempty"`
	Version    uint32       `json:"version"`
	Ranges     []SavedRange `json:"ranges"`
	More       bool         `json:"more,omitempty"` // than the ranges
}

// SavedRange is a byte range; a length of 0 reaches to the end of the file.
type SavedRange struct {
	Offset    uint64 `json:"offset"`
	Length    uint64 `json:"length,omitempty"`
	Exclusive bool   `json:"exclusive,omitempty"`
	Waits     bool   `json:"waits,omitempty"`
}

// saved are the locks of a run that has ended early.
func (ls *locks) saved() (list []SavedLock) {
	for k, h := range ls.held {
		l := SavedLock{Clone: k.clone.Number, Owner: k.owner, Object: k.object, Connection: h.connection, Credential: h.credential, Version: h.version, More: h.more}
		for _, r := range h.ranges {
			l.Ranges = append(l.Ranges, SavedRange{r.offset, r.length, r.exclusive, r.waits})
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b SavedLock) int {
		return cmp.Or(cmp.Compare(a.Clone, b.Clone), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Object, b.Object))
	})
	return list
}

// relock takes over the locks of an interrupted run. What cannot be had any more is noted, lock by
// lock: calls that depend on it will be answered otherwise than in the capture.
func (ls *locks) relock(ctx context.Context, list []SavedLock, clones []*bindings.Clone) error {
	t := ls.tables
	for i := range list {
		l := &list[i]
		if l.Clone < 0 || l.Clone >= len(clones) || l.Owner < 1 || l.Owner > len(t.Owners) || t.Owners[l.Owner-1].Kind != plan.OwnerNLM || l.Object < 1 || l.Object > len(t.Objects) {
			return fmt.Errorf("lock %d of the interrupted run is not one of the plan", i+1)
		}
		k := heldKey{clones[l.Clone], l.Owner, l.Object}
		h := &heldLock{connection: l.Connection, credential: l.Credential, version: l.Version, more: l.More}
		for _, r := range l.Ranges {
			h.add(heldRange{r.Offset, r.Length, r.Exclusive, r.Waits})
		}
		if ls.held == nil {
			ls.held = map[heldKey]*heldLock{}
		}
		ls.held[k] = h
		for j := range h.ranges {
			if err := ls.retake(ctx, k, h, &h.ranges[j]); err != nil {
				return err
			}
		}
		if h.more {
			ls.note("%s has more locks than the interrupted run remembered: not all of them were asked for again", ls.describe(k, nil))
		}
	}
	return nil
}

// retake asks for one lock.
func (ls *locks) retake(ctx context.Context, k heldKey, h *heldLock, r *heldRange) error {
	if r.waits {
		ls.grants.set(grantKey(k, r), waits)
	}
	a := nlm.Nlm4Lockargs{Block: r.waits, Exclusive: r.exclusive, Alock: alock(k, r)}
	st, err := ls.manager.call(ctx, k, h, nlm.NLM_LOCK, &a)
	if err == nil && st == nlm.NLM4_DENIED_GRACE_PERIOD && !r.waits {
		a.Reclaim = true // the server has restarted meanwhile
		st, err = ls.manager.call(ctx, k, h, nlm.NLM_LOCK, &a)
	}
	switch {
	case fatal(err):
		return err
	case err != nil:
		ls.note("a lock of NFSv3 may be lost, %s: %v", ls.describe(k, r), err)
	case st == nlm.NLM4_GRANTED && r.waits:
		r.waits = false
		ls.grants.set(grantKey(k, r), called)
	case st == nlm.NLM4_GRANTED, st == nlm.NLM4_BLOCKED && r.waits:
	case st == nlm.NLM4_DENIED_GRACE_PERIOD && r.waits: // its call of the plan asks again
	default:
		ls.note("a lock of NFSv3 is lost, %s: %s", ls.describe(k, r), st)
	}
	return nil
}

// describe describes a lock, or all of an owner in a file.
func (ls *locks) describe(k heldKey, r *heldRange) string {
	o := &ls.tables.Owners[k.owner-1]
	s := fmt.Sprintf("owner %d of %s in %s", o.Svid, o.Host, ls.tables.Objects[k.object-1].Path)
	if r != nil {
		s += fmt.Sprintf(" @%d+%d", r.offset, r.length)
	}
	return s
}
