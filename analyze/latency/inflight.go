package latency

// crowd counts the calls that are in flight over all connections. As long as those of one level are the only ones, which is most of
// the time of a capture of one client, it is the same as that level, and keeps nothing itself.
type crowd struct {
	own  ends
	sole *level // nil: own has all that are in flight
	// apart says that somebody else takes from the budget, too: then there is no sole level.
	apart bool
}

// soleRoom is how much of the budget has to be left: with less, ends would be lost at another time.
const soleRoom = 1 << 14

// enter takes a call of a level, and returns how many calls are in flight over all connections. If these are at most as many as there have
// been, it may return more than there are, but not more than that.
func (a *crowd) enter(l *level, start, end int64, granted uint32, most int, budget *int) int {
	if a.sole != nil && (a.sole != l || *budget-len(l.heap) < soleRoom) {
		a.leave(budget)
	}
	l.advance(start, budget)
	if a.sole == nil && !a.apart && *budget > 2*soleRoom {
		if a.own.pass(start, budget); a.own.n|l.n|len(a.own.level.heap)|len(l.heap) == 0 {
			a.sole = l
		}
	}
	l.step(event{at: start, change: 1})
	l.push(event{at: end, change: -1, granted: granted}, budget)
	if a.sole != nil {
		return l.n
	}
	return a.own.enter(start, end, most, budget)
}

// follows is enter for a level whose calls come one after the other: the one before, which alone was in flight on its connection, ended before
// this one. It returns 0, and has changed nothing, if it is another one.
func (a *crowd) follows(l *level, start, end int64, granted uint32, most int, budget *int) int {
	if a.sole != nil && a.sole != l || !l.follows(start, end, granted) {
		return 0
	}
	if a.sole != nil {
		return 1
	}
	n := a.own.enter(start, end, most, budget)
	if n == 1 && !a.apart && *budget > 2*soleRoom { // no other is in flight
		a.own.reset(budget)
		a.sole = l
	}
	return n
}

// follows is advance, step and push for a call that comes after the only one in flight. It returns false, and has changed nothing, if it is
// another one.
func (l *level) follows(start, end int64, granted uint32) bool {
	if len(l.heap) != 1 || l.n != 1 || len(l.time) < 2 {
		return false
	}
	e := &l.heap[0]
	if e.at > start || e.at < l.now {
		return false
	}
	// As in step, up to the end of the one before, and from there.
	l.passed(e.at, e.granted)
	dt := float64(start - e.at)
	l.time[0] += dt
	if l.granted > 0 {
		l.known += dt
	}
	l.now = start
	e.at, e.granted = end, granted
	return true
}

// passed accounts for the time up to the end of the only one in flight. Its reply granted so many credits.
func (l *level) passed(end int64, granted uint32) {
	dt := float64(end - l.now)
	l.time[1] += dt
	if l.granted > 0 {
		l.known += dt
		if l.granted == 1 {
			l.limited += dt
		}
	}
	if granted > 0 {
		l.granted = granted
	}
}

// leave copies what the sole level has in flight.
func (a *crowd) leave(budget *int) {
	l := a.sole
	a.sole = nil
	a.own.take(l, budget)
}
