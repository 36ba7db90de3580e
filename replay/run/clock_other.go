//go:build !linux

package run

import "time"

// alarm wakes the engine at a time, as precisely as the runtime's timers are.
type alarm struct {
	c     chan struct{}
	timer *time.Timer
}

func newAlarm() (*alarm, error) {
	a := &alarm{c: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(time.Hour, func() {
		select {
		case a.c <- struct{}{}:
		default:
		}
	})
	a.timer.Stop()
	return a, nil
}

func (a *alarm) set(d time.Duration) { a.timer.Reset(max(d, time.Nanosecond)) }

func (a *alarm) stop() { a.timer.Stop() }
