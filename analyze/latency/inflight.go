package latency

// crowd counts the calls that are in flight over all connections. As long as those of one level are the only ones, which is most of
// the time, it is the same as that level, and keeps nothing itself.
type crowd struct {
	own  level
	sole *level // nil: own has all that are in flight
	// apart says that somebody else takes from the budget, too: then there is no sole level.
	apart bool
}

// soleRoom is how much of the budget has to be left: with less, ends would be lost at another time.
const soleRoom = 1 << 14

// enter takes a call of a level, and returns how many calls are in flight over all connections.
func (a *crowd) enter(l *level, start, end int64, granted uint32, budget *int) int {
	if a.sole != nil && (a.sole != l || *budget-len(l.heap) < soleRoom) {
		a.leave(budget)
	}
	l.advance(start, budget)
	if a.sole == nil && !a.apart && *budget > 2*soleRoom {
		if a.own.pass(start, budget); a.own.n|l.n|len(a.own.heap)|len(l.heap) == 0 {
			a.sole = l
		}
	}
	l.step(event{at: start, change: 1})
	l.push(event{at: end, change: -1, granted: granted}, budget)
	if a.sole != nil {
		return l.n
	}
	return a.enterOwn(start, end, budget)
}

// follows is enter for the sole level if its calls come one after the other: the one before, which alone was in flight, ended
// before this one. It returns false, and has changed nothing, otherwise.
func (a *crowd) follows(l *level, start, end int64, granted uint32) bool {
	if a.sole != l || len(l.heap) != 1 || l.n != 1 || len(l.time) < 2 {
		return false
	}
	e := &l.heap[0]
	if e.at > start || e.at < l.now {
		return false
	}
	// As in spend, up to the end of the one before, and from there.
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

// enterOwn is enter without a level.
func (a *crowd) enterOwn(start, end int64, budget *int) int {
	a.own.pass(start, budget)
	a.own.n++
	a.own.push(event{at: end, change: -1}, budget)
	return a.own.n
}

// leave copies what the sole level has in flight.
func (a *crowd) leave(budget *int) {
	l := a.sole
	a.sole = nil
	a.own.n = l.n
	a.own.heap = append(a.own.heap[:0], l.heap...)
	*budget -= len(l.heap)
}

// pass is advance for a level of which nothing but the number matters.
func (l *level) pass(t int64, budget *int) {
	for len(l.heap) > 0 && (l.heap[0].at < t || l.heap[0].at == t && l.heap[0].change < 0) {
		l.n += int(l.pop(budget).change)
	}
}
