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

// leave copies what the sole level has in flight.
func (a *crowd) leave(budget *int) {
	l := a.sole
	a.sole = nil
	a.own.take(l, budget)
}
