// Package deadline watches many deadlines with one timer.
package deadline

import "time"

// Timer calls a function at the earliest deadline that it has been given, or
// before. It has no lock: the owner of the deadlines holds its own around every
// call. The function runs on a goroutine of its own, and is expected to take that
// lock and call Sweep.
type Timer struct {
	fire  func()
	timer *time.Timer
	armed time.Time // when it fires; zero: it does not
}

// New makes a timer that is not armed.
func New(fire func()) *Timer { return &Timer{fire: fire} }

// Arm makes the timer fire at t or before.
func (d *Timer) Arm(t time.Time) {
	if !d.armed.IsZero() && !t.Before(d.armed) {
		return
	}
	d.armed = t
	if d.timer == nil {
		d.timer = time.AfterFunc(time.Until(t), d.fire)
		return
	}
	d.timer.Reset(time.Until(t))
}

// Stop disarms the timer. It may have fired already: the function has to find
// out by itself that there is nothing left to do.
func (d *Timer) Stop() {
	d.armed = time.Time{}
	if d.timer != nil {
		d.timer.Stop()
	}
}

// Sweep calls late for every entry of table that is due, and arms the timer for
// the earliest of the others. due is an entry's deadline; zero is none. late may
// delete the entry from the table.
func Sweep[K comparable, V any](d *Timer, table map[K]V, now time.Time, due func(V) time.Time, late func(K, V)) {
	d.armed = time.Time{}
	var next time.Time
	for k, v := range table {
		switch t := due(v); {
		case t.IsZero():
		case !t.After(now):
			late(k, v)
		case next.IsZero() || t.Before(next):
			next = t
		}
	}
	if !next.IsZero() {
		d.Arm(next)
	}
}
