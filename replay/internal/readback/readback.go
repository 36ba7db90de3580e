package readback

import (
	"context"
	"errors"
	"fmt"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Options of Run.
type Options struct {
	Findings int // that are listed
	// Holes is how many bytes of holes are read in all.
	Holes uint64
}

// Limits.
const (
	// DefaultHoles is how many bytes of holes are read if Options say nothing.
	DefaultHoles = 256 << 20
	// readSize is how many bytes one READ asks for.
	readSize = 128 << 10
)

// Run reads back what the run has changed in the copies of its plan. expectations gives that of each
// copy. The error says why it ended early; what was found before counts.
func Run(ctx context.Context, fs client.FS, load *workload.Workload, clones []*bindings.Clone, expectations func(number int) *expected.State, o Options) (*report.ReadBack, error) {
	if o.Holes == 0 {
		o.Holes = DefaultHoles
	}
	buf, err := fs.Alloc(readSize)
	if err != nil {
		return nil, err
	}
	defer fs.Free(buf)
	out := &report.ReadBack{New: map[int]uint64{}, Unreadable: map[int]uint64{}}
	for _, w := range clones {
		r := &reader{ctx: ctx, fs: fs, load: load, w: w, expected: expectations(w.Number), opt: &o, out: out, buf: buf, found: map[int]at{}}
		if err := r.run(); err != nil {
			out.Ended = err.Error()
			return out, err
		}
	}
	return out, ctx.Err()
}

// reader reads back one copy of the plan.
type reader struct {
	ctx      context.Context
	fs       client.FS
	load     *workload.Workload
	w        *bindings.Clone
	expected *expected.State
	opt      *Options
	out      *report.ReadBack
	buf      []byte
	found    map[int]at // objects that a name led to
	putOff   int        // calls in a row
}

// at is where an object is.
type at struct {
	handle []byte
	path   string
}

func (r *reader) run() error {
	if err := r.names(); err != nil {
		return err
	}
	for _, id := range r.expected.Objects() {
		if err := r.object(id); err != nil {
			return err
		}
	}
	return r.ctx.Err()
}

// path is the place of an object for people.
func (r *reader) path(id int) string {
	if x, ok := r.found[id]; ok {
		return x.path
	}
	if id > 0 && id <= len(r.load.Tables.Objects) {
		if o := &r.load.Tables.Objects[id-1]; o.Path != "" {
			return o.Path
		}
	}
	return fmt.Sprintf("object %d", id)
}

// wrong notes something that is not as it must be.
func (r *reader) wrong(path string, why verdict.Reason) {
	if len(r.out.Wrong) >= max(r.opt.Findings, 1) {
		r.out.More++
		return
	}
	r.out.Wrong = append(r.out.Wrong, report.Finding{Clone: r.w.Number, Path: path, Code: why.Code, Reason: report.Sentence(&why)})
}

// field notes an attribute that is not as it must be.
func (r *reader) field(path, name, now, was string) {
	r.wrong(path, verdict.Reason{Code: verdict.FieldDiffers, Now: now, Was: was, At: verdict.Place{Path: name, Field: name}})
}

// left counts what could not be compared.
func (r *reader) left(what string, err error) {
	if err != nil {
		var s *client.StatusError
		if errors.As(err, &s) {
			what += ": " + s.Symbol
		} else {
			what += ": " + err.Error()
		}
	}
	for i := range r.out.Left {
		if r.out.Left[i].What == what {
			r.out.Left[i].Count++
			return
		}
	}
	if len(r.out.Left) < 16 {
		r.out.Left = append(r.out.Left, report.LeftOut{What: what, Count: 1})
	} else {
		r.out.Left[len(r.out.Left)-1].Count++
	}
}

// maxPutOff is how many calls in a row the server may put off until the client gives up, which takes the client of NFSv4 about
// two minutes each. A file that somebody else has a delegation of is put off for a lease; a server that does so with all
// files must not keep the run from its end.
const maxPutOff = 3

// fatal returns the error that ends the reading: err if it is no answer of the server, or too many calls that were put off.
func (r *reader) fatal(err error) error {
	var status *client.StatusError
	var denied *client.DeniedError
	if err != nil && !errors.As(err, &status) && !errors.As(err, &denied) {
		return err
	}
	if !errors.Is(err, client.ErrPutOff) {
		r.putOff = 0
		return nil
	}
	if r.putOff++; r.putOff < maxPutOff {
		return nil
	}
	return fmt.Errorf("the server has put off %d calls in a row: %w", r.putOff, err)
}
