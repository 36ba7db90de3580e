package session

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// table are the slots of one channel of a session.
type table struct {
	limit uint32 // the server's target, or what was granted; 0 if not known
	used  uint32 // highest slot that was used, plus 1
	said  uint32 // highest slot in use as the client said, plus 1

	busy   []bool
	inUse  int
	most   int
	since  int64 // of inUse
	begun  bool
	area   int64 // Σ inUse·time
	full   int64 // time with all slots in use
	start  int64
	last   int64
	filled int64 // since when all are in use; 0 if they are not, or it is not known
	freed  int64 // when a slot became free after all were in use; 0 if none did, or a call began since
	after  uint64
	soon   int64 // sum of the times from freed to the call
	soonst int64
	beyond uint64 // slots beyond maxSlots
}

func (t *table) pass(at int64) {
	if !t.begun {
		t.begun, t.start = true, at
		t.since = at
	}
	if d := at - t.since; d > 0 {
		t.area += d * int64(t.inUse)
		if t.isFull() {
			t.full += d
		}
		t.since = at
	}
	t.last = max(t.last, at)
}

func (t *table) isFull() bool { return t.limit > 0 && t.inUse >= int(t.limit) }

// enter takes a call of a version without slots.
func (t *table) enter(at int64) {
	t.pass(at)
	t.inUse++
	t.most = max(t.most, t.inUse)
}

// leave takes its end; at is 0 if it got no reply.
func (t *table) leave(at int64) {
	if at != 0 {
		t.pass(at)
	}
	t.inUse--
}

// begin takes a slot. It returns how long all had been in use before one became free, if this is the first call since:
// at most so long it waited.
func (t *table) begin(r *Recorder, held *int, slot uint32, at int64) (wait time.Duration) {
	if !r.slots { // else nobody asks for how long how many were in use
		t.pass(at)
	}
	if have := len(t.busy); slot < maxSlots && int(slot) >= have {
		n := max(int(slot)+1, min(2*have, maxSlots))
		if r.take(held, n-have) {
			t.busy = append(make([]bool, 0, n), t.busy...)[:n]
		}
	}
	if int(slot) >= len(t.busy) {
		t.beyond++
		r.lost.Slots++
		return 0
	}
	if t.busy[slot] {
		return 0 // the reply was not captured, or the call was sent again
	}
	if t.freed != 0 {
		t.after++
		d := max(at-t.freed, 0)
		t.soon += d
		if t.after == 1 || d < t.soonst {
			t.soonst = d
		}
		if t.filled != 0 {
			wait = max(rdma.Between(t.filled, t.freed), 0)
		}
		t.filled, t.freed = 0, 0
	}
	t.busy[slot] = true
	t.inUse++
	t.most = max(t.most, t.inUse)
	if t.isFull() && t.filled == 0 {
		t.filled = at
	}
	return wait
}

// end frees a slot.
func (t *table) end(r *Recorder, slot uint32, at int64) {
	if at != 0 && !r.slots {
		t.pass(at)
	}
	if int(slot) >= len(t.busy) || !t.busy[slot] {
		return
	}
	full := t.isFull()
	t.busy[slot] = false
	t.inUse--
	switch {
	case full && !t.isFull():
		t.freed = at
	case t.freed == 0 && !t.isFull():
		t.filled = 0 // the limit was raised
	}
}

// series is the use of slots over time.
type series struct {
	begun  bool
	start  int64
	length int64
	list   []Interval

	// The latest interval that a call lay in, and the times that it covers: none if to is 0.
	at       int
	from, to int64
}

// Interval is a part of the time of a session.
type Interval struct {
	Start   int64  `json:"start_ns"` // since the first call
	Calls   uint64 `json:"calls"`    // that began, and were answered
	Busy    int64  `json:"busy_ns"`  // of all slots together
	Highest uint32 `json:"highest"`  // slots in use at most, as the client said
	Target  uint32 `json:"target"`   // slots that the server wanted in use at most, the newest
}

const (
	maxIntervals  = 128
	firstInterval = 1_000_000
)

// add adds a call from its beginning to its reply. Most lie in the same interval as the one before.
func (x *series) add(from, to int64, highest, target uint32) {
	if from < x.from || to >= x.to || to < from {
		x.addAnywhere(from, to, highest, target)
		return
	}
	v := &x.list[x.at]
	v.begun(highest, target)
	v.Busy += to - from
}

// begun counts a call.
func (v *Interval) begun(highest, target uint32) {
	v.Calls++
	v.Highest = max(v.Highest, highest)
	if target != 0 {
		v.Target = target
	}
}

// addAnywhere is add for whatever call.
func (x *series) addAnywhere(from, to int64, highest, target uint32) {
	if !x.begun {
		x.begun, x.start, x.length = true, from, firstInterval
	}
	from, to = max(from-x.start, 0), max(to-x.start, 0)
	for max(from, to)/x.length >= maxIntervals {
		n := (len(x.list) + 1) / 2
		for i := range n {
			v := x.list[2*i]
			if 2*i+1 < len(x.list) {
				w := &x.list[2*i+1]
				v.Calls += w.Calls
				v.Busy += w.Busy
				v.Highest = max(v.Highest, w.Highest)
				if w.Target != 0 {
					v.Target = w.Target
				}
			}
			x.list[i] = v
		}
		x.list = x.list[:n]
		x.length *= 2
	}
	for len(x.list) <= int(max(from, to)/x.length) {
		x.list = append(x.list, Interval{})
	}
	x.at = int(from / x.length)
	x.list[x.at].begun(highest, target)
	x.from = x.start + int64(x.at)*x.length
	if x.to = x.from + x.length; x.from < x.start || x.to < x.from { // too far away
		x.from, x.to = 0, 0
	}
	for at := from; at < to; {
		n := min(x.length-at%x.length, to-at) // without the end of the interval, which may overflow
		x.list[at/x.length].Busy += n
		at += n
	}
}
