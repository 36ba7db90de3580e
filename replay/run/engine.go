package run

import (
	"context"
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/alarm"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// engine is one run. Except for inbox, its fields belong to its own goroutine.
type engine struct {
	round int // of a series; 0 without one
	opt   Options
	load  *workload.Workload
	ctx   context.Context

	clones []*bindings.Clone
	sched  *schedule.Schedule
	guard  *guard.Guard // of all connections
	judge  *judge.Judge
	record *report.Recorder
	lines  lines
	inbox  inbox
	alarm  *alarm.Alarm
	probe  prober
	feed   feed
	locks  locks

	codec       codec
	free        []*call
	last        report.Outcome // that was recorded
	slots       slots
	later       postponements
	corrections corrections
	delegations delegations
	provision   provision
	completed   map[[2]int]bool // clients, by clone, that have sent a RECLAIM_COMPLETE which the plan does not have
	restarts    restarts
	roots       roots
	resumed     resumed

	start    time.Time
	count    counts
	before   counts // of the run that this one goes on with: sent and bytes
	stopping string // why nothing more is sent
	broken   error  // a mistake of this program
}

// counts are the counters of a run.
type counts struct {
	left      int // calls of the window that are not over
	done      int // calls that are over
	flying    int // calls under way
	sent      int
	bytes     uint64 // of data
	failures  int    // consecutive calls without a reply
	retried   int
	givenUp   int    // calls that were put off for too long
	putOffWhy string // the latest status with which a call was put off
	extra     int    // calls that the plan does not have
	lastSend  time.Time
}

// stop ends the run: nothing more is sent. The first reason counts.
func (e *engine) stop(why string) {
	if e.stopping == "" {
		e.stopping = why
	}
}

// step moves a call on in the table of its states.
func (e *engine) step(n *schedule.Entry, v schedule.Event) {
	if err := n.Step(v); err != nil {
		e.mistake(err)
	}
}

// mistake ends the run with an error that should not happen.
func (e *engine) mistake(err error) {
	if e.broken == nil {
		e.broken = fmt.Errorf("this is a mistake of the program, not of the server: %w", err)
		e.stop("a mistake of the program")
	}
}

// get returns a call of an entry.
func (e *engine) get(n *schedule.Entry, l *line) *call {
	var c *call
	if last := len(e.free) - 1; last >= 0 {
		c, e.free = e.free[last], e.free[:last]
	} else {
		c = &call{inbox: &e.inbox, hash: e.opt.Verify == judge.All && e.load.Tables.Header.Payload == plan.Captured}
	}
	c.entry, c.line = n, l
	c.clone = e.clones[n.Clone]
	c.form = bindings.Form{Op: n.Op, Slot: -1}
	if len(e.resumed.notes) > 0 && n.Op.ID > 0 {
		p := Position{n.Op.ID, n.Clone}
		if was, ok := e.resumed.notes[p]; ok {
			c.form.Note, c.form.Newest = verdict.Code(was.Code), was.Newest
			delete(e.resumed.notes, p)
		}
	}
	l.flying++
	return c
}

// put keeps a call for reuse. The caller has already subtracted it from its line.
func (e *engine) put(c *call) {
	e.later.graceOver(c)
	c.release()
	c.entry, c.clone, c.behind, c.form, c.verdict = nil, nil, nil, bindings.Form{Slot: -1}, judge.Reply{}
	c.own, c.follows, c.relaid, c.tries, c.putOff, c.status, c.lives = false, false, false, 0, time.Time{}, "", lives{}
	c.itemLengths = c.itemLengths[:0]
	e.free = append(e.free, c)
}
