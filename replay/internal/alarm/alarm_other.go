//go:build !linux

package alarm

import "time"

// Alarm wakes its owner at a time, as precisely as the runtime's timers are.
type Alarm struct {
	C     chan struct{}
	timer *time.Timer
}

// New returns an alarm that is not set.
func New() (*Alarm, error) {
	a := &Alarm{C: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(time.Hour, func() {
		select {
		case a.C <- struct{}{}:
		default:
		}
	})
	a.timer.Stop()
	return a, nil
}

// Set makes C ready after d. An earlier setting is forgotten.
func (a *Alarm) Set(d time.Duration) { a.timer.Reset(max(d, time.Nanosecond)) }

// Stop gives back what the alarm holds.
func (a *Alarm) Stop() { a.timer.Stop() }
