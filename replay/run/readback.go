package run

import (
	"context"

	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/readback"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// placed tells the expected state the names that exist before the replay. links says that objects also
// have their other names.
func (e *engine) placed(w *bindings.Clone, links bool) {
	// In a directory that was empty there is nothing else.
	whole := links && e.opt.Prepare && e.opt.Write && !e.opt.Reuse
	t := &e.load.Tables
	base := 0
	for i := range t.Objects {
		if t.Objects[i].Base {
			base = i + 1
			break
		}
	}
	l := e.judge.Expected(w.Number)
	for i := range t.Objects {
		o := &t.Objects[i]
		if whole && o.Type == "dir" && w.Objects[i+1].Handle != nil && (o.Base || o.Origin == plan.Before && e.load.Below(i+1)) {
			l.Whole(i + 1)
		}
		if o.Origin != plan.Before || o.Base || w.Objects[i+1].Handle == nil || !e.load.Below(i+1) {
			continue
		}
		dir := o.Parent
		if dir == 0 {
			dir = base
		}
		l.Link(expected.Name{Dir: dir, Name: e.load.FileName(i + 1)}, i+1)
		for _, x := range o.Links {
			if n := workload.Text(x.Name, x.NameBytes); links && ops.PlainName([]byte(n)) {
				l.Link(expected.Name{Dir: x.Parent, Name: n}, i+1)
			}
		}
	}
}

// readBack compares the server's files at the end with what the run has left there, if asked to,
// and accounts for the bytes that were written.
func (e *engine) readBack(ctx context.Context, r *report.Report) {
	if e.opt.VerifyFiles && e.count.flying > 0 {
		e.note(r, "nothing was read back: calls were under way when the run ended")
	} else if e.opt.VerifyFiles {
		// The guard of this client allows no changes, whatever the run may do.
		g := guard.New(guard.Options{Owner: bindings.OwnerPrefix(e.opt.Tag)})
		fs, end, err := e.access(ctx, g, "read-back")
		if err == nil {
			r.ReadBack, err = readback.Run(ctx, fs, e.load, e.clones, e.judge.Expected, readback.Options{Findings: e.opt.Mismatches})
			done, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
			end(done)
			cancel()
		}
		if r.ReadBack == nil {
			r.ReadBack = &report.ReadBack{Ended: err.Error()}
		}
	}
	for _, w := range e.clones {
		end, unreadable := uint64(0), uint64(0)
		if b := r.ReadBack; b != nil {
			end, unreadable = b.New[w.Number], b.Unreadable[w.Number]
		}
		a := e.judge.Expected(w.Number).Account(end, unreadable)
		add(&r.Written, &a)
	}
}

func (e *engine) note(r *report.Report, s string) { r.Notes = append(r.Notes, s) }

// add adds the account of one copy.
func add(w *report.Written, a *expected.Account) {
	w.Bytes, w.Run, w.End = w.Bytes+a.Written, w.Run+a.Run, w.End+a.End
	for i, n := range a.Never {
		if n == 0 {
			continue
		}
		w.Never += n
		why := expected.Why(i).String()
		found := false
		for k := range w.Why {
			if w.Why[k].Reason == why {
				w.Why[k].Bytes += n
				found = true
			}
		}
		if !found {
			w.Why = append(w.Why, report.NeverBytes{Reason: why, Bytes: n})
		}
	}
}
