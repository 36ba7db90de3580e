package run

import (
	"errors"
	"io"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/prepare"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Preview writes what a run would do. It makes no connection. empty means that the server holds
// nothing but what the run creates.
func Preview(out io.Writer, w *workload.Workload, opt Options, server string, empty bool) error {
	opt = opt.withDefaults()
	if err := w.Replayable(); err != nil {
		return err
	}
	v := &report.Preview{Server: server, Directory: opt.Directory, Make: opt.Prepare, Write: opt.Write, Prepared: files(w), PrepareOnly: opt.PrepareOnly,
		Clones: opt.Clones, Timing: opt.Timing.String(), Speed: opt.Speed, AsCaptured: opt.Timing == AsCaptured,
		Duration: schedule.Span(float64(w.Tables.Header.Duration) / opt.Speed), MaxCalls: opt.MaxOps,
		Refused: map[string]int{}, Skipped: len(w.Skips), Impossible: w.Impossible(), Kinds: map[string]*report.PreviewKind{}}
	for i := range w.Tables.Servers {
		v.Same = append(v.Same, w.Tables.Servers[i].Same...)
	}
	if opt.PrepareOnly {
		return v.Text(out)
	}
	made := opt.Prepare && opt.Write
	rehearse := newRehearsal(w, opt, made || !opt.Prepare && !empty)
	var there *rehearsal
	if opt.Prepare && !opt.Write && !empty {
		// Files of an earlier run may still be there: only the server knows.
		there = newRehearsal(w, opt, true)
	}
	ops, err := w.Read()
	if err != nil {
		return err
	}
	defer ops.Close()
	var left workload.Reasons
	for {
		o, skip, err := ops.Next()
		switch {
		case errors.Is(err, io.EOF):
			if w.Streams() {
				v.Impossible = left.List()
			}
			return v.Text(out)
		case err != nil:
			return err
		case skip != nil:
			v.Skipped++
			left.Skip(skip)
			continue
		}
		rehearse.count(v, o)
		if there != nil && there.op(o) == nil {
			v.SendIfThere++
		}
	}
}

// maxRefused is how many reasons why calls are not sent are distinguished.
const maxRefused = 256

// count counts an op.
func (h *rehearsal) count(v *report.Preview, o *plan.Op) {
	name := report.OpName(o)
	k := v.Kinds[name]
	if k == nil {
		k = &report.PreviewKind{}
		v.Kinds[name] = k
	}
	k.Calls++
	err := h.op(o)
	var refused *guard.Refused
	if o.Modifies || errors.As(err, &refused) && refused.Reason == guard.ReadOnly {
		k.Modify++
	}
	if err != nil {
		k.NotSent++
		why := err.Error()
		if _, ok := v.Refused[why]; !ok && len(v.Refused) >= maxRefused {
			why = "for other reasons"
		}
		v.Refused[why]++
		return
	}
	v.Send++
	if h.delegated(o) {
		v.Delegated++
	}
}

// files counts the objects that would be created.
func files(w *workload.Workload) (p report.Prepared) {
	for i := range w.Tables.Objects {
		o := &w.Tables.Objects[i]
		if o.Base || o.Origin != plan.Before || !w.Below(i+1) {
			continue
		}
		switch prepare.TypeOf(o.Type) {
		case client.Directory:
			p.Directories++
		case client.Regular:
			p.Files++
			if o.Size <= prepare.MaxFull && w.Tables.Header.Payload != plan.Sparse {
				p.Bytes += o.Size
			} else {
				p.Sparse++
			}
		default:
			p.Others++
		}
	}
	return p
}
