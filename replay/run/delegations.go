package run

import (
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/callback"
)

// delegations hold recalls until their delegations may be returned.
type delegations struct {
	clones  []*bindings.Clone
	returns map[int]int64 // delegations that the plan returns, as far as it was read, and when
	paced   bool          // a replay with the captured times
	reached int64         // captured time of the latest reply to an op that was sent
	busy    func() bool   // whether calls are under way
	rouse   func()        // the engine
	held    []heldRecall
}

// find returns the state that is recalled, and its clone; 0 if nobody knows it.
func (d *delegations) find(r *callback.Recall) (w *bindings.Clone, ref int) {
	w = d.clones[0]
	for _, x := range d.clones {
		if i := x.Find(&r.Stateid); i != 0 {
			w, ref = x, i
		}
	}
	return w, ref
}

// heldRecall is a recall that is not answered at once. It came before the reply with the delegation, which may have been lost with a
// connection, so that the call is sent again; or the plan returns the delegation, since the captured server had recalled it, too. Until then it
// opens the file with the delegation and writes what the captured client had in its memory.
type heldRecall struct {
	callback.Recall
	until, limit time.Time
	alarm        time.Time // when the engine looks again
	done         int       // calls that were over by then
}

const (
	// patience is how long a recall waits for the reply with the delegation, while calls are under way.
	patience = 500 * time.Millisecond
	// standstill is how long the recall of a delegation that the plan returns is held without progress: what comes before the return may wait for
	// the call that the server has recalled it for.
	standstill = 100 * time.Millisecond
	// maxHold is how long it is held in all: servers wait longer before they revoke a delegation.
	maxHold = 5 * time.Second
	// maxHeld is how many recalls are held at a time.
	maxHeld = 256
)

// hold keeps a recall, and reports whether it does.
func (d *delegations) hold(r *callback.Recall) bool {
	if w, ref := d.find(r); len(d.held) >= maxHeld || !d.early(w, ref) {
		return false
	}
	now := time.Now()
	d.held = append(d.held, heldRecall{Recall: *r, until: now.Add(patience), limit: now.Add(maxHold), done: -1})
	return true
}

// early reports whether a recall is not answered yet: the delegation is unknown, or the plan returns it; in a replay with the captured times,
// it does so before calls that were sent have ended in the capture.
func (d *delegations) early(w *bindings.Clone, ref int) bool {
	if !d.busy() {
		return false
	}
	at, returned := d.returns[ref]
	return ref == 0 || returned && (at <= d.reached || !d.paced) && !w.States[ref].Closed
}

// release gives back what is held no longer; done is how many calls are over.
func (d *delegations) release(done int, giveBack func(*callback.Recall)) {
	kept := d.held[:0]
	for _, r := range d.held {
		w, ref := d.find(&r.Recall)
		now := time.Now()
		if ref != 0 && r.done != done && now.Before(r.limit) {
			r.done, r.until = done, now.Add(standstill)
		}
		if !d.early(w, ref) || !now.Before(r.until) {
			giveBack(&r.Recall)
			continue
		}
		if !now.Before(r.alarm) {
			r.alarm = r.until
			time.AfterFunc(r.until.Sub(now)+time.Millisecond, d.rouse)
		}
		kept = append(kept, r)
	}
	d.held = kept
}
