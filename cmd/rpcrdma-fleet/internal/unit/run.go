package unit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/onepass"
	"github.com/rpcrdma/toolkit/analyze/parquet"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Options of Run. They do not change the result. The zero value is ready for use.
type Options struct {
	// Progress, if set, is told how far the unit is: after each file, and at least every few seconds while one is
	// read. It is called by one goroutine at a time.
	Progress func(Progress)
	// Log, if set, is told of what is worth knowing: that it is started over, for example.
	Log func(format string, args ...any)
	// Key signs what is kept for resuming, and only what is signed by it is used: see SECURITY.md.
	Key []byte
	// Again decodes the unit even if it is done.
	Again bool
	// Allow, if set, says why a capture of a unit before this one must not be read.
	Allow func(url string) error
}

// Progress is how far a unit is.
type Progress struct {
	Files        int   // read to the end
	Stored       int64 // bytes read, as stored
	Packets      uint64
	Transactions uint64
	Resumed      int // files that an earlier attempt had read
}

// ErrUnit says that a unit cannot be decoded by this program, however often it is tried.
var ErrUnit = errors.New("the unit cannot be decoded")

// Permanent reports whether trying a unit again is useless: its files are not there any more, or are others.
func Permanent(err error) bool {
	return errors.Is(err, ErrUnit) || errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrNotFound)
}

// Version is what a Done says of the program.
func Version() string { return cli.Version() }

// IsDone returns what became of a unit; nil if it is not done.
func IsDone(ctx context.Context, u *layout.Unit, out *store.Store) (*layout.Done, error) {
	d, err := job.ReadDone(ctx, out, u)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return d, err
}

// Run decodes a unit, or what an earlier attempt has left of it, and writes its results to out; done.json comes last.
// The results depend on the unit and the version of the program only, not on how often that was interrupted. A unit
// that is done already is not decoded again. An error means that it is not done: see Permanent.
//
// A worker takes about Unit.Options.Memory; see cli.LimitProcess.
func Run(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, opt Options) (done *layout.Done, err error) {
	if opt.Log == nil {
		opt.Log = func(string, ...any) {}
	}
	if opt.Progress == nil {
		opt.Progress = func(Progress) {}
	}
	if !opt.Again {
		d, err := IsDone(ctx, u, out)
		if err != nil && !errors.Is(err, layout.ErrFormat) {
			return nil, err
		}
		if d != nil {
			Tidy(ctx, u.ID, out)
			return d, nil
		}
	}
	r, err := begin(ctx, u, in, out, &opt)
	if err != nil {
		return nil, err
	}
	defer r.rows.discard()
	return r.run()
}

// run is one attempt.
type run struct {
	ctx  context.Context //nolint:containedctx // of the attempt
	u    *layout.Unit
	in   *store.Inputs
	out  *store.Store
	opt  *Options
	pass *onepass.Pass
	rows *rows
	kept kept
	// again: units before this one are decoded only for what is known at their end. Their results are there already.
	again bool
	tail  bool // all captures are read, and what is still open is ended

	batch  int // bytes of packets read at once
	told   time.Time
	before Progress // as told after a file
}

// kept is what an attempt knows besides the Pass.
type kept struct {
	files    int   // read to the end
	stored   int64 // bytes of them
	results  []layout.Result
	damage   uint64
	problems []layout.Problem
	cut      uint64 // packets cut to the snapshot length
	late     uint64 // files that begin before the end of those before them
	lost     uint64 // rows that were not written
	skipped  int    // files that are no captures
	gone     int    // files that are not there any more, or are others
	captures []state.Capture

	follows, apart string          // as in layout.Done
	fresh          state.File      // what was found of connections that have ended, and was not written yet
	ended          []layout.Result // what was
	base           layout.Counts   // of the units before
	last           int64           // time of their newest packet
}

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnit, fmt.Errorf(format, args...))
}

// Memory that is set aside: pages of columns and what compresses them; memory offered, calls followed; connections
// that have ended.
const reserved = 36 << 20

func newRun(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, opt *Options) (*run, error) {
	o := &u.Options
	m := cli.MemoryOf(int(o.Memory))
	m.Reserve(reserved)
	r := &run{ctx: ctx, u: u, in: in, out: out, opt: opt, batch: m.Batch()}
	by, err := latency.ParseKeys(joined(o.By))
	if err != nil {
		return nil, unusable("by: %w", err)
	}
	match, err := cli.Filter(o.Filter)
	if err != nil {
		return nil, unusable("filter: %w", err)
	}
	rules := check.All()
	if o.Rules != "" {
		if rules, err = check.Select(o.Rules); err != nil {
			return nil, unusable("rules: %w", err)
		}
	}
	profile, ok := check.ParseProfile(o.Profile)
	if !ok {
		return nil, unusable("there is no profile %q", o.Profile)
	}
	r.rows = newRows(r, m.Scale(parquet.GroupBytes)/2)
	r.pass = onepass.New(onepass.Options{
		Decode: decode.Options{
			SkipICRC: o.NoICRC, Memory: m.Tracker(),
			Transactions: transaction.Options{Open: o.OpenCalls, Assembly: o.Message},
			RoCE:         roce.Limits{Connections: o.Connections, Linger: 10 * time.Minute},
			TCP:          decode.TCPLimits{Connections: o.Connections, Record: o.Message},
		},
		Report: latency.Options{By: by, Interval: time.Duration(o.Interval), Top: o.Top, Inline: o.Inline, Memory: m.Scale(latency.DefaultMemory)},
		Check:  check.Options{Rules: rules, Profile: profile},
		Filter: match, Expression: o.Filter,
		Names: m.Names(), Fabric: m.Scale(fabric.DefaultMemory), Sessions: m.Scale(session.DefaultMemory / 2),
		Row: r.rows.add, Malformed: r.malformed,
	})
	return r, nil
}

func joined(keys []string) string {
	if len(keys) == 0 {
		return "none"
	}
	var b bytes.Buffer
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k)
	}
	return b.String()
}

// run decodes what is left.
func (r *run) run() (_ *layout.Done, err error) {
	defer func() {
		// Of the decoder's invariants a hostile capture may break one that nobody knows yet: the unit fails, and no
		// other.
		if x := recover(); x != nil {
			err = fmt.Errorf("decoding panicked: %v\n%s", x, debug.Stack())
		}
	}()
	ends := r.u.Parts()
	for i, end := range ends {
		if end <= r.kept.files {
			continue
		}
		for r.kept.files < end {
			if err := r.file(&r.u.Files[r.kept.files]); err != nil {
				return nil, err
			}
		}
		if err := r.rows.flush(); err != nil {
			return nil, err
		}
		if d := r.overtaken(); d != nil {
			return d, nil
		}
		name := layout.ProgressName(r.u.ID)
		if i == len(ends)-1 {
			name = layout.ResumeName(r.u.ID)
			if err := r.writeEnded(); err != nil {
				return nil, err
			}
		}
		if err := r.save(name); err != nil {
			return nil, err
		}
	}
	r.tail = true
	if err := r.pass.Flush(); err != nil {
		return nil, err
	}
	if err := r.rows.flush(); err != nil {
		return nil, err
	}
	return r.finish()
}

// overtaken returns what became of the unit if another attempt has done it meanwhile, to which it was delivered as
// well: the result would be the same, and what is kept for resuming would stay in the store if this attempt was killed.
func (r *run) overtaken() *layout.Done {
	if r.opt.Again {
		return nil
	}
	d, err := IsDone(r.ctx, r.u, r.out)
	if err != nil || d == nil {
		return nil // an error that lasts comes back when something is written
	}
	r.opt.Log("%v was done by another meanwhile", r.u)
	Tidy(r.ctx, r.u.ID, r.out)
	return d
}

// finish writes the state, and says that the unit is done.
func (r *run) finish() (*layout.Done, error) {
	if err := context.Cause(r.ctx); err != nil {
		return nil, err
	}
	d := r.done()
	sections, err := r.pass.Sections([]string{r.u.Tap})
	if err != nil {
		return nil, err
	}
	d.Counts.Findings = r.pass.Findings()
	input := state.Input{Damaged: d.Status != 0, Tap: r.u.Tap, Captures: r.kept.captures, Part: len(r.kept.ended) > 0}
	var f state.File
	f.Add(state.NewUnit(append(sections, input.Section())...))
	if d.State, err = r.write(layout.StateName(r.u.ID), &f); err != nil {
		return nil, err
	}
	if err := r.clean(); err != nil {
		return nil, err
	}
	if err := Count(r.ctx, r.out, r.u, d); err != nil {
		return nil, err
	}
	if _, err := r.out.WriteSmall(r.ctx, layout.DoneName(r.u.ID), d.Encode()); err != nil {
		return nil, err
	}
	Tidy(r.ctx, r.u.ID, r.out)
	return d, nil
}

// endedBytes is from how many bytes on what has ended is written.
const endedBytes = 8 << 20

// ended takes out what was found of connections that have ended. It does so after each file, so that the results do not depend on how
// the files are divided among units, and what is kept for the units that follow does not grow with the day.
func (r *run) ended() error {
	k := &r.kept
	if len(k.ended) == layout.MaxEnded {
		return nil
	}
	if x := r.pass.Ended(); x != nil {
		input := state.Input{Tap: r.u.Tap, Part: true}
		k.fresh.Add(state.NewUnit(append(x, input.Section())...))
	}
	if k.fresh.Size() < endedBytes {
		return nil
	}
	return r.writeEnded()
}

func (r *run) writeEnded() error {
	k := &r.kept
	if len(k.fresh.Units()) == 0 {
		return nil
	}
	own := 0
	for i := range k.ended {
		if strings.HasPrefix(k.ended[i].Name, layout.UnitFolder(r.u.ID)) {
			own++
		}
	}
	w, err := r.write(layout.EndedName(r.u.ID, own), &k.fresh)
	k.ended, k.fresh = append(k.ended, w), state.File{}
	return err
}

func (r *run) write(name string, f *state.File) (layout.Result, error) {
	w, err := r.out.WriteSmall(r.ctx, name, f.Append(nil))
	return layout.Result{Name: name, Size: w.Size, SHA256: w.SHA256, Unpacked: int64(f.Size())}, err
}

// Tidy removes what was kept for resuming a unit that is done, and what killed attempts have written in part. What
// stays because the store is away costs its space only; whoever finds the unit done tidies again. A signal that ends the
// program does not keep it from that.
func Tidy(ctx context.Context, unit string, out *store.Store) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = out.Remove(ctx, layout.ProgressName(unit))
	_ = out.RemovePartial(ctx, layout.UnitFolder(unit))
}
