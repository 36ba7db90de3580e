package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/prepare"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Snapshot is a run that has ended before its plan: what another run needs to go on from there, on the
// same server. The server keeps what it has, so it must not be older than a lease if clients of NFSv4
// have something open: what has expired is made anew as after a restart of the server.
//
// It has handles, which the guard of the resumed run believes to lie below the directory. Whoever
// stores a Snapshot has to make sure that nobody else changes it.
type Snapshot struct {
	Format    string `json:"format"`
	Plan      string `json:"plan"` // a hash of header and tables
	Tag       string `json:"tag"`
	Directory string `json:"directory"`

	First int        `json:"first"` // the first op that is not over
	Place plan.Place `json:"place"` // where it is in the plan
	At    int64      `json:"at"`    // when it was sent in the capture, in nanoseconds from the start
	// Over are the calls of later ops that are over, and Notes what distinguishes those that are to be
	// sent again from the captured ones.
	Over  []Position `json:"over,omitempty"`
	Notes []Changed  `json:"notes,omitempty"`

	Clones []*bindings.Snapshot `json:"worlds"`
	Judge  *judge.Snapshot      `json:"judge"`
	Record *report.Snapshot     `json:"record"`
	Ours   []Position           `json:"ours,omitempty"` // sessions that the plan does not end
	Locks  []SavedLock          `json:"locks,omitempty"`
	Read   int                  `json:"read"` // ops
	Sent   int                  `json:"sent"`
	Extra  int                  `json:"extra"`
	Retry  int                  `json:"retried"`
	Done   int                  `json:"done"`
	Bytes  uint64               `json:"bytes"`
}

// SnapshotFormat names the form of a Snapshot.
const SnapshotFormat = "rpcrdma.resume/1"

// Position is an op, or a session, of a clone.
type Position struct {
	ID    int `json:"id"`
	Clone int `json:"clone,omitempty"`
}

// Changed is a call that is to be sent otherwise than planned.
type Changed struct {
	Position
	Code   int  `json:"note"` // a verdict.Code
	Newest bool `json:"newest,omitempty"`
}

// identity distinguishes plans.
func identity(load *workload.Workload) (string, error) {
	t := &load.Tables
	b, err := json.Marshal([]any{t.Header, len(t.Servers), t.Connections, len(t.Credentials), t.Clients, t.Sessions, len(t.Owners), len(t.States), len(t.Objects)})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// fits reports why a snapshot is not of a plan and options.
func (s *Snapshot) fits(load *workload.Workload, o *Options) error {
	id, err := identity(load)
	switch {
	case err != nil:
		return err
	case s.Format != SnapshotFormat:
		return fmt.Errorf("the interrupted run is in the format %q; this program knows %s", s.Format, SnapshotFormat)
	case s.Plan != id:
		return errors.New("the interrupted run was of another plan, or the plan was changed")
	case s.Directory != o.Directory:
		return fmt.Errorf("the interrupted run was in %s, not in %s", s.Directory, o.Directory)
	case len(s.Clones) != o.Clones:
		return fmt.Errorf("the interrupted run had %d clones, not %d", len(s.Clones), o.Clones)
	case s.Judge == nil || s.Record == nil || s.First < 1 || slices.Contains(s.Clones, nil):
		return errors.New("a part of the interrupted run is missing")
	}
	return nil
}

// resumed are the calls of a resumed run that begin in another state than those of a new one.
type resumed struct {
	over  map[Position]bool
	notes map[Position]Changed
}

// resume takes over from an interrupted run.
func (e *engine) resume(s *Snapshot) {
	e.resumed = resumed{over: map[Position]bool{}, notes: map[Position]Changed{}}
	for _, p := range s.Over {
		e.resumed.over[p] = true
	}
	for _, c := range s.Notes {
		e.resumed.notes[c.Position] = c
	}
	e.sched.Start(s.First, e.shift())
	e.judge.Restore(s.Judge)
	e.record.Restore(s.Record, max(0, s.Read-s.First+1))
	e.feed.ops = s.First - 1
	e.before.sent, e.before.bytes = s.Sent, s.Bytes
	e.count.sent, e.count.extra, e.count.retried, e.count.bytes, e.count.done = s.Sent, s.Extra, s.Retry, s.Bytes, s.Done
	for _, p := range s.Ours {
		if p.Clone >= 0 && p.Clone < len(e.clones) && p.ID > 0 && p.ID <= len(e.load.Tables.Sessions) {
			e.provision.ours = append(e.provision.ours, ownSession{e.clones[p.Clone], p.ID})
		}
	}
}

// wasOver reports whether a call was over when the run was interrupted. Each is asked for once.
func (e *engine) wasOver(id, clone int) bool {
	p := Position{id, clone}
	was := e.resumed.over[p]
	delete(e.resumed.over, p)
	return was
}

// find finds the directory of an interrupted run again, and gives the clones what they had.
func (e *engine) find(ctx context.Context, s *Snapshot) error {
	fs, end, err := e.access(ctx, e.guard, "preparation")
	if err != nil {
		return fmt.Errorf("looking at the target: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		end(ctx)
		cancel()
	}()
	if err := prepare.Find(ctx, fs, e.load, e.clones, prepare.Options{Directory: e.opt.Directory, Guard: e.guard, Note: e.record.Note}); err != nil {
		return err
	}
	for i, w := range e.clones {
		base := w.Base
		if !w.Restore(s.Clones[i]) {
			return errors.New("the interrupted run has symbols that the plan does not have")
		}
		if string(base) != string(w.Base) {
			return fmt.Errorf("%s is not the directory in which the run was interrupted: its file handle is another one", e.opt.Directory)
		}
		w.EachHeld(func(id int, handle []byte) {
			if e.load.Below(id) {
				e.guard.Base(handle)
			}
		}, e.guard.OwnClient, e.guard.OwnSession, e.guard.OwnState)
	}
	return nil
}

// rebind lets the server call the clients over the connections of this run. Without that it recalls no
// delegations, and so gives none (RFC 8881, section 2.10.3.1).
func (e *engine) rebind(ctx context.Context) error {
	for _, w := range e.clones {
		for i := range e.load.Tables.Sessions {
			s := &e.load.Tables.Sessions[i]
			if !w.Sessions[i+1].Bound || w.Sessions[i+1].Lost || !e.load.Delegated(s.Client) {
				continue
			}
			args := []plan.Field{{N: "bctsa_sessid", Kind: plan.FieldSession, Ref: i + 1}, u32("bctsa_dir", uint32(nfs4.CDFC4_FORE_OR_BOTH)), u32("bctsa_use_conn_in_rdma_mode", 0)}
			err := e.callOwn(ctx, nil, w, s.Client, []plan.CompoundOp{{Op: uint32(nfs4.OP_BIND_CONN_TO_SESSION), Args: args}})
			if fatal(err) {
				return err
			}
			if err != nil {
				e.record.Note("session %d of the plan has no backward channel: %v", i+1, err) // it may have expired
			}
		}
	}
	return nil
}

// shift is how long before its resumption a run would have had to begin, so that the first op is due
// now.
func (e *engine) shift() time.Duration {
	s := e.opt.Resume
	switch {
	case s == nil:
	case e.opt.Timing.Paced():
		return schedule.Span(float64(s.At) / e.opt.Speed)
	case e.opt.Timing == FixedRate:
		return schedule.Span(float64((s.First-1)*e.opt.Clones) / e.opt.Rate * float64(time.Second))
	}
	return 0
}

// snapshot is what another run needs to go on; nil if there is nothing left to do. Calls in flight
// are lost.
func (e *engine) snapshot() (*Snapshot, error) {
	e.loseRest()
	unread, err := e.unread()
	if err != nil || len(unread) == 0 {
		return nil, err
	}
	s := &Snapshot{Format: SnapshotFormat, Tag: e.opt.Tag, Directory: e.opt.Directory, First: e.sched.First(), Place: e.feed.places.first().place,
		Read: e.feed.ops, Sent: e.count.sent, Extra: e.count.extra, Retry: e.count.retried, Done: e.count.done, Bytes: e.count.bytes}
	s.At, _ = e.sched.Since()
	left := map[Position]bool{}
	e.sched.Unfinished(func(n *schedule.Entry) { left[Position{n.Op.ID, n.Clone}] = true })
	for id := s.First; id < s.First+e.sched.Len(); id++ {
		for w := range e.clones {
			if p := (Position{id, w}); !left[p] {
				s.Over = append(s.Over, p)
			}
		}
	}
	for p := range e.resumed.over { // of ops that have not come into the window again
		s.Over = append(s.Over, p)
	}
	s.Notes = e.changed()
	for _, w := range e.clones {
		s.Clones = append(s.Clones, w.Snapshot())
	}
	for _, o := range e.provision.ours {
		s.Ours = append(s.Ours, Position{o.id, o.w.Number})
	}
	s.Locks = e.locks.saved()
	s.Judge, s.Record = e.judge.Snapshot(unread), e.record.Snapshot()
	s.Plan, err = identity(e.load)
	return s, err
}

// loseRest ends the calls that are in flight although the run has waited for them, and those whose
// reply was judged.
func (e *engine) loseRest() {
	var list []*schedule.Entry
	e.sched.Unfinished(func(n *schedule.Entry) {
		if st := n.State(); st == schedule.Sent || st == schedule.Judged {
			list = append(list, n)
		}
	})
	for _, n := range list {
		if n.State() == schedule.Sent {
			e.step(n, schedule.NoReply)
			e.judge.Lost(n.Clone, n.Op)
			e.outcome(n, nil, verdict.Of(verdict.Lost, verdict.Reason{Code: verdict.NoReply, Detail: "the run was interrupted"}), 0)
		}
		e.step(n, schedule.Finish)
		e.release(n)
	}
}

// unread are the ops that the judge knows of, from the first that is not over; none at the end of the
// plan. The window has at least that one then.
func (e *engine) unread() (list []*plan.Op, err error) {
	f := &e.feed
	for e.sched.Len() == 0 { // an empty window does not know where it is
		for f.ahead.len() == 0 && !f.eof && f.err == nil {
			e.take(f.await())
		}
		if f.ahead.len() == 0 {
			return nil, f.err
		}
		if err := e.plan(f.ahead.take()); err != nil {
			return nil, err
		}
	}
	for f.places.first().op.ID < e.sched.First() {
		f.places.take()
	}
	for _, q := range []*queue{&f.places, &f.ahead} {
		for i := q.head; i < len(q.list); i++ {
			list = append(list, q.list[i].op)
		}
	}
	return list, nil
}

// changed are the calls that are to be sent otherwise than planned.
func (e *engine) changed() (list []Changed) {
	note := func(c *call) {
		if !c.own && (c.form.Note != verdict.None || c.form.Newest) {
			list = append(list, Changed{Position: Position{c.form.Op.ID, c.clone.Number}, Code: int(c.form.Note), Newest: c.form.Newest})
		}
	}
	for i := range e.later.list {
		note(e.later.list[i].call)
	}
	for _, calls := range e.slots.blocked {
		for _, c := range calls {
			note(c)
		}
	}
	for _, c := range e.resumed.notes {
		list = append(list, c)
	}
	return list
}

// keep hands over what another run needs to go on, if this one has ended early. It reports whether
// it has: the server then keeps the clients' state.
func (e *engine) keep() bool {
	if e.opt.Keep == nil || e.stopping == "" || e.broken != nil || e.feed.err != nil {
		return false
	}
	s, err := e.snapshot()
	if err == nil && s != nil {
		err = e.opt.Keep(s)
	}
	if err != nil {
		e.record.Note("the run cannot be resumed: %v", err)
	}
	return err == nil && s != nil
}
