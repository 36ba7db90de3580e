package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/prepare"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Run executes a plan. It returns a report whenever the replay has begun, also beside
// an error. Cancelling ctx ends the run in order: it waits a few seconds for calls in flight, and
// the report says that it was interrupted.
func Run(ctx context.Context, load *workload.Workload, opt Options) (*report.Report, error) {
	opt = opt.withDefaults()
	if err := load.Replayable(); err != nil {
		return nil, err
	}
	if opt.Timing == FixedRate && opt.Rate <= 0 {
		return nil, errors.New("a fixed rate needs a rate")
	}
	dir, err := CleanDirectory(opt.Directory)
	if err != nil {
		return nil, err
	}
	opt.Directory = dir
	opt.VerifyFiles = opt.VerifyFiles && !(opt.Shared && opt.Write)
	switch {
	case opt.MaxP99 > 0:
		return opt.findMax(ctx, load)
	case opt.Rounds > 1 || opt.LoopFor > 0:
		return opt.loop(ctx, load)
	}
	record := report.NewRecorder(opt.Mismatches)
	record.WarmUp = opt.WarmUp
	return once(ctx, load, opt, round{record: record})
}

// once replays the plan once.
func once(ctx context.Context, load *workload.Workload, opt Options, in round) (*report.Report, error) {
	if opt.Resume != nil {
		if err := opt.Resume.fits(load, &opt); err != nil {
			return nil, err
		}
	}
	e := newEngine(ctx, load, opt, in)
	defer e.feed.close()
	began := time.Now()
	prepared, err := e.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if opt.PrepareOnly {
		r := e.report(began, time.Since(began))
		r.Planned, r.NotDone, r.Setup.Prepared = 0, 0, prepared
		return r, nil
	}
	defer e.hangUp()
	defer e.probe.close()
	if err := e.connect(ctx); err != nil {
		return nil, err
	}
	if opt.Resume != nil {
		if err := e.locks.relock(ctx, opt.Resume.Locks, e.clones); err != nil {
			return nil, err
		}
	}
	began = time.Now()
	err = e.loop()
	took := time.Since(began)
	kept := e.keep()
	if kept {
		e.record.Note("the run can be resumed: the server keeps what its clients have, for as long as a lease lasts")
		if n := len(e.locks.held); n > 0 {
			e.record.Note("locks of NFSv3 are still held in %d files: the run that goes on takes them over; the server knows no lease for them", n)
		}
	} else if e.count.flying == 0 {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		e.locks.unlockAll(end)
		e.provision.returnAll(end)
		e.provision.abolish(end)
		cancel()
	} else {
		e.record.Note("%d calls were under way when the run ended", e.count.flying)
	}
	r := e.report(began, took)
	r.Setup.Prepared = prepared
	if kept {
		e.opt.VerifyFiles = false
	}
	e.readBack(ctx, r)
	return r, err
}

func newEngine(ctx context.Context, load *workload.Workload, opt Options, in round) *engine {
	e := &engine{opt: opt, round: in.number, load: load, ctx: ctx,
		clones: bindings.New(load, opt.Clones, opt.Tag),
		guard:  guard.New(guard.Options{Write: opt.Write, Owner: bindings.OwnerPrefix(opt.Tag), LockHost: bindings.LockPrefix(opt.Tag)}),
		judge:  judge.New(load, judge.Options{Level: opt.Verify, Ignore: opt.Ignore, Relaxed: opt.Relaxed, Shared: opt.Shared && opt.Write, Follow: opt.VerifyFiles, Tick: max(opt.Tick, 0)}),
		record: in.record,
		inbox:  inbox{wake: make(chan struct{}, 1)},
		sched:  schedule.New(&load.Tables, schedule.Options{Timing: opt.Timing, Speed: opt.Speed, Rate: opt.Rate, Relaxed: opt.Relaxed, Clones: opt.Clones, Stagger: opt.Stagger}),
	}
	e.codec = codec{creds: credentials(&load.Tables), layout: opt.Layout, judged: opt.Verify == judge.All, timeout: opt.Timeout, results: workload.Results{}}
	e.slots.blocked = map[*bindings.Session][]*call{}
	e.later.patience = opt.Patience
	e.corrections = corrections{&load.Tables, map[int]bool{}, &e.codec.args}
	e.delegations = delegations{clones: e.clones, returns: map[int]int64{}, paced: opt.Timing.Paced(), busy: e.busy, rouse: e.inbox.rouse}
	e.provision = provision{load: load, clones: e.clones, note: e.record.Note, call: e.callOwn, made: map[*bindings.Session]*line{}}
	e.roots = roots{e.clones, map[symbol]root{}}
	e.locks.manager = lockManager{&e.lines, e.codec.creds, &e.count.extra}
	e.locks.tables, e.locks.note, e.locks.grants.wake = &load.Tables, e.record.Note, e.inbox.rouse
	var from *plan.Place
	if opt.Resume != nil {
		from = &opt.Resume.Place
		e.resume(opt.Resume)
	}
	if err := e.feed.start(load, from, e.inbox.rouse); err != nil {
		e.feed.err = err
		e.stop("the plan cannot be read")
	}
	if !load.Streams() {
		e.fill()
	}
	return e
}

// prepare finds the directory and makes the files.
func (e *engine) prepare(ctx context.Context) (done report.Prepared, err error) {
	if e.opt.Resume != nil {
		return done, e.find(ctx, e.opt.Resume)
	}
	fs, end, err := e.access(ctx, e.guard, "preparation")
	if err != nil {
		return done, fmt.Errorf("looking at the target: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		end(ctx)
		cancel()
	}()
	first := ""
	note := func(format string, args ...any) {
		if e.record.Note(format, args...); first == "" {
			first = fmt.Sprintf(format, args...)
		}
	}
	done, err = prepare.Run(ctx, fs, e.load, e.clones, prepare.Options{Directory: e.opt.Directory, Make: e.opt.Prepare && e.opt.Write, Reuse: e.opt.Reuse, Shared: e.opt.Shared,
		Round: e.round, Guard: e.guard, Note: note})
	if err == nil && !e.opt.Incomplete {
		err = enough(&done, first)
	}
	if err == nil {
		err = e.apart(ctx)
	}
	for _, w := range e.clones {
		e.placed(w, done.Failed == 0)
		if done.Directories+done.Files+done.Others > 0 {
			e.judge.Changed(w.Number)
		}
		for id := range w.Objects {
			if o := &w.Objects[id]; o.Prepared {
				e.judge.Expected(w.Number).Prepared(id, expected.Prepared{Size: o.Size, Filled: o.Filled, Parts: e.load.Tables.Objects[id-1].Content, New: o.Emptied})
			}
		}
	}
	return done, err
}

// enough returns an error if more than half of the objects of the plan could not be made. first is the reason of the first failure.
func enough(done *report.Prepared, first string) error {
	if all := done.Directories + done.Files + done.Others + done.Failed; 2*done.Failed > all {
		return fmt.Errorf("%d of %d objects could not be made, so that most calls would fail (%s): --incomplete goes on", done.Failed, all, first)
	}
	return nil
}

// connect makes the connections of all clones, and creates the state from before the capture.
func (e *engine) connect(ctx context.Context) error {
	for _, w := range e.clones {
		if err := e.dialAll(ctx, w); err != nil {
			return err
		}
	}
	e.listen(ctx)
	if e.opt.Resume != nil {
		return e.rebind(ctx) // the rest was created by the run that was interrupted
	}
	for _, w := range e.clones {
		if err := e.provision.establish(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// report puts everything together.
func (e *engine) report(began time.Time, took time.Duration) *report.Report {
	r := &report.Report{Sources: e.load.Tables.Header.Sources, Start: began, Took: took, Stopped: e.stopping,
		Planned: e.planned(), Sent: e.count.sent, Retried: e.count.retried, Extra: e.count.extra, NotDone: max(0, e.planned()-e.count.done),
		Bytes: e.count.bytes, Impossible: e.load.Impossible()}
	if e.load.Streams() && e.feed.eof && e.opt.Resume == nil {
		r.Impossible = e.feed.left.List() // and not as the header says
	}
	if e.opt.Shared && e.opt.Write {
		e.record.Note("the clones share their files: a difference may be another clone's doing, and nothing was read back")
	}
	if together, cut := e.judge.Short(); together+cut > 0 {
		e.record.Note("there was no room for %d calls that were under way together with others, and %d traces of incomplete ones: what they explain counts as different", together, cut)
	}
	for _, name := range e.judge.Unmet() {
		e.record.Note("no reply that was compared has a field %q, which was to be ignored", name)
	}
	for i := range e.load.Tables.Servers {
		for _, x := range e.load.Tables.Servers[i].Same {
			e.record.Note("in the capture %s", x)
		}
	}
	for _, w := range e.clones {
		if list := w.Missing(); len(list) > 0 {
			e.record.Note("the server does not support %s; calls were adapted or left out, as a client would do it", strings.Join(list, ", "))
		}
	}
	r.Recoveries = e.restarts.list
	if n := e.restarts.more; n > 0 {
		e.record.Note("%d more clients were made anew after restarts of the server", n)
	}
	e.record.Fill(r)
	r.Empty = e.planned() == 0 // which may not have been read yet
	for _, c := range e.lines.all {
		p := c.req.Peer()
		r.Transport = append(r.Transport, report.TransportReport{Transport: p.Transport, Local: p.Local.String(), Remote: p.Remote.String(), Detail: p.Detail, Stats: c.req.Stats()})
	}
	r.Setup = report.Setup{Directory: e.opt.Directory, Timing: e.opt.Timing.String(), Paced: e.opt.Timing.Paced(), Clones: len(e.clones),
		Connections: len(e.lines.all), Layout: "the endpoint's own"}
	if e.opt.Layout {
		r.Setup.Layout = "as captured"
	}
	return r
}
