package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/alarm"
)

// grace is how long a stopped run waits for calls in flight.
const grace = 5 * time.Second

// maxFailures is how many consecutive calls may go without a reply before a run gives up.
const maxFailures = 32

// loop runs until all ops are over, or until nothing more may be sent and the calls in flight
// have come back.
func (e *engine) loop() error {
	alarm, err := alarm.New()
	if err != nil {
		return err
	}
	defer alarm.Stop()
	e.alarm = alarm
	e.start = time.Now().Add(-e.shift())
	if e.round <= 1 || e.record.Start.IsZero() {
		e.record.Start = e.start
	}
	progress, stopProgress := ticks(e.opt.Progress != nil)
	defer stopProgress()
	limit, stopLimit := after(e.opt.MaxDuration)
	defer stopLimit()
	var deadline <-chan time.Time // by which what is under way has to have come back
	interrupt := e.ctx.Done()
	for {
		e.receiveAll()
		e.answerQuestions()
		e.heldRecalls()
		e.probed()
		e.grantsArrived()
		if e.stopping == "" {
			e.fill()
			e.sendDue()
			// What cannot be sent is over at once, which makes room.
			for e.stopping == "" && !e.feed.exhausted() && e.roomy() && e.feed.fillable(e.opt.WindowText) {
				e.fill()
				e.sendDue()
			}
		}
		if e.count.failures >= maxFailures {
			e.stop(fmt.Sprintf("%d calls in a row had no reply", e.count.failures))
		}
		if e.broken != nil || e.count.left == 0 && e.feed.exhausted() || e.stopping != "" && e.count.flying == 0 {
			return errors.Join(e.broken, e.feed.err)
		}
		if e.stopping != "" && deadline == nil {
			t := time.NewTimer(grace)
			defer t.Stop()
			deadline = t.C
		}
		if e.stuck() {
			return errors.New("the rest of the plan waits for itself")
		}
		select {
		case <-e.inbox.wake:
		case <-alarm.C:
		case <-progress:
			e.progress()
		case <-interrupt:
			e.stop("interrupted")
			interrupt = nil
		case <-limit:
			e.stop("the time is up")
		case <-deadline:
			return e.feed.err
		}
	}
}

// ticks comes once a second, if wanted.
func ticks(wanted bool) (<-chan time.Time, func()) {
	if !wanted {
		return nil, func() {}
	}
	t := time.NewTicker(time.Second)
	return t.C, t.Stop
}

// after comes after a time; never if that is 0.
func after(d time.Duration) (<-chan time.Time, func()) {
	if d <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// stuck reports whether nothing can happen any more although calls are left. That is a bug in
// this program or in the plan: the remaining calls wait for calls that are over.
func (e *engine) stuck() bool {
	next, _ := e.sched.Next()
	reading := !e.feed.exhausted() && e.roomy() // the next op has not come from the file yet
	return !reading && e.count.flying == 0 && e.stopping == "" && next == nil && len(e.later.list) == 0 && len(e.probe.waiting) == 0 && len(e.locks.awaiting) == 0 && !e.inbox.pending()
}

// receiveAll handles everything that has come back.
func (e *engine) receiveAll() {
	for {
		done, recalled := e.inbox.take()
		if len(done) == 0 && len(recalled) == 0 {
			return
		}
		for _, c := range done {
			e.receive(c)
		}
		for i := range recalled {
			e.recall(&recalled[i])
		}
	}
}

// progress tells how far the run is.
func (e *engine) progress() {
	p := Progress{Elapsed: time.Since(e.start), Total: e.planned(), InFlight: e.count.flying,
		Verdicts: e.record.Verdicts, PutOffWhy: e.count.putOffWhy}
	for i := range e.later.list {
		if !e.later.list[i].call.putOff.IsZero() {
			p.PutOff++
		}
	}
	p.Done = e.count.done
	if next, due := e.sched.Next(); next != nil {
		p.LateBy = max(0, p.Elapsed-due)
	}
	e.opt.Progress(p)
}
