package prepare

import (
	"context"
	"fmt"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Options of Run.
type Options struct {
	Directory string // absolute path on the target, as path.Clean returns it
	Make      bool   // make the directory and the files; otherwise they exist already
	Reuse     bool   // the directory need not be empty
	Shared    bool   // the clones have the directory and the files of the first
	Round     int    // of a series, whose rounds have directories of their own; 0 without one
	// Guard is told which directory is the base, and what lies above it.
	Guard *guard.Guard
	// Note is called for what could not be made, if the run can do without it.
	Note func(format string, args ...any)
}

// Run finds the directory and makes the files of all clones.
func Run(ctx context.Context, fs client.FS, load *workload.Workload, clones []*bindings.Clone, o Options) (done report.Prepared, err error) {
	top, err := find(ctx, fs, o.Directory, o.Make, o.Guard.MakeBase)
	if err != nil {
		return done, err
	}
	if o.Make && !o.Reuse {
		if err := empty(ctx, fs, top.handle, o.Directory); err != nil {
			return done, err
		}
	}
	o.tell(top)
	s := o.scene(fs, load, clones)
	s.done = &done
	return done, o.each(clones, func(w *bindings.Clone) error {
		if err := s.place(ctx, w, top); err != nil {
			return err
		}
		if o.Make {
			if err := s.make(ctx, w); err != nil {
				return fmt.Errorf("preparation: %w", err)
			}
		} else if err := s.lookUp(ctx, w); err != nil {
			return fmt.Errorf("looking up what the plan uses: %w", err)
		}
		return nil
	})
}

// each calls f for all clones that have files of their own, and gives the others those of the first.
func (o *Options) each(clones []*bindings.Clone, f func(*bindings.Clone) error) error {
	for i, w := range clones {
		if o.Shared && i > 0 {
			w.Share(clones[0])
		} else if err := f(w); err != nil {
			return err
		}
	}
	return nil
}

// existing finds the directory, and tells the guard of it.
func (o *Options) existing(ctx context.Context, fs client.FS) (*found, error) {
	top, err := find(ctx, fs, o.Directory, false, o.Guard.MakeBase)
	if err == nil {
		o.tell(top)
	}
	return top, err
}

// tell tells the guard of the directory and those above it.
func (o *Options) tell(top *found) {
	for _, h := range top.chain {
		o.Guard.Above(h)
	}
	o.Guard.Base(top.handle)
}

// Find finds the directories of all clones, which exist already, and nothing in them.
func Find(ctx context.Context, fs client.FS, load *workload.Workload, clones []*bindings.Clone, o Options) error {
	top, err := o.existing(ctx, fs)
	if err != nil {
		return err
	}
	s := o.scene(fs, load, clones)
	return o.each(clones, func(w *bindings.Clone) error { return s.place(ctx, w, top) })
}

// Apart looks up the NFSv3 handles of what Run has made with another version. NFSv3 may have another path for the directory.
func Apart(ctx context.Context, fs client.FS, load *workload.Workload, clones []*bindings.Clone, o Options) error {
	top, err := o.existing(ctx, fs)
	if err != nil {
		return err
	}
	s := o.scene(fs, load, clones)
	return o.each(clones, func(w *bindings.Clone) error {
		x := w.Beside()
		if err := s.place(ctx, x, top); err != nil {
			return err
		}
		if err := s.lookUp(ctx, x); err != nil {
			return err
		}
		w.Take(x)
		return nil
	})
}

func (o *Options) scene(fs client.FS, load *workload.Workload, clones []*bindings.Clone) *scene {
	return &scene{fs: fs, load: load, opt: o, parents: load.Parents(), clones: len(clones) > 1 && !o.Shared || o.Round > 0, before: max(o.Round-1, 0) * len(clones)}
}

// scene is what the preparation of all clones has in common.
type scene struct {
	fs      client.FS
	load    *workload.Workload
	opt     *Options
	parents map[int]int // of directories above the base
	clones  bool        // each clone has a directory of its own
	before  int         // clones of earlier rounds
	done    *report.Prepared
}
