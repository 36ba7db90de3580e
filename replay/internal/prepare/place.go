package prepare

import (
	"context"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// maxAbove is how many directories above the base are followed.
const maxAbove = 64

// place finds what stands for the base, and for the directories above it, in one
// clone.
func (s *scene) place(ctx context.Context, w *bindings.Clone, top *found) error {
	chain, names := top.chain, components(s.opt.Directory)
	w.Base = top.handle
	if s.clones {
		name := fmt.Sprintf("clone%d", s.before+w.Number+1)
		h, err := s.below(ctx, top.handle, name)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", s.opt.Directory, name, err)
		}
		chain, names = append(append([][]byte(nil), chain...), top.handle), append(names, name)
		w.Base = h
	}
	t := &s.load.Tables
	for i := range t.Objects {
		o := &t.Objects[i]
		if !o.Base {
			continue
		}
		base, chain, names := w.Base, chain, names
		if name := workload.Name(o); name != "" {
			// Several directories were mounted: each becomes one in ours.
			h, err := s.below(ctx, w.Base, name)
			if err != nil {
				return fmt.Errorf("%s/%s: %w", s.opt.Directory, name, err)
			}
			base, chain, names = h, append(slices.Clone(chain), w.Base), append(slices.Clone(names), name)
		}
		w.Objects[i+1].Handle = base
		if len(names) > 0 {
			w.Names[i+1] = names[len(names)-1]
		}
		s.above(w, i+1, chain, names)
	}
	if s.load.RootIsBase() {
		w.Root = w.Base
	}
	w.NoRoot = w.Root == nil
	return nil
}

// Rehearse places the base and the directories above it in a clone as Run would, with
// made-up handles. It returns those of the directories above.
func Rehearse(load *workload.Workload, w *bindings.Clone, directory string, clones bool) (above [][]byte) {
	s := &scene{load: load, opt: &Options{Directory: directory}, parents: load.Parents()}
	names := components(directory)
	if clones {
		names = append(names, "clone1")
	}
	for i := range names {
		above = append(above, fmt.Appendf(nil, "above %d", i))
	}
	w.Base = []byte("base")
	for i := range load.Tables.Objects {
		o := &load.Tables.Objects[i]
		if !o.Base {
			continue
		}
		base, chain, names := w.Base, above, names
		if name := workload.Name(o); name != "" {
			base, chain, names = bindings.RehearsedHandle(i+1), append(slices.Clone(chain), w.Base), append(slices.Clone(names), name)
		}
		w.Objects[i+1].Handle = base
		if len(names) > 0 {
			w.Names[i+1] = names[len(names)-1]
		}
		s.above(w, i+1, chain, names)
	}
	if load.RootIsBase() {
		w.Root = w.Base
	}
	w.NoRoot = w.Root == nil
	return above
}

// above maps the directories above the captured base to those above ours, starting at
// the base. names and chain are the names and handles of the path to our base.
func (s *scene) above(w *bindings.Clone, base int, chain [][]byte, names []string) {
	up, at := s.parents[base], len(names)-1
	for steps := 0; s.load.Above(up) && len(chain) > 0 && steps < maxAbove; steps++ {
		last := len(chain) - 1
		w.Objects[up].Handle, chain = chain[last], chain[:last]
		if at--; at >= 0 {
			w.Names[up] = names[at]
		}
		if s.parents[up] == 0 {
			w.Root = w.Objects[up].Handle
		}
		up = s.parents[up]
	}
}

// below finds a directory by name, and makes it if that is allowed.
func (s *scene) below(ctx context.Context, dir []byte, name string) ([]byte, error) {
	if !ops.PlainName([]byte(name)) {
		return nil, fmt.Errorf("%q is not the name of a directory", name)
	}
	h, _, err := s.fs.Lookup(ctx, dir, name)
	if client.IsStatus(err, statusNoEnt) && s.opt.Make {
		h, err = s.fs.Mkdir(ctx, dir, name, client.Mode(0o755))
	}
	return h, err
}

// lookUp finds the handles of objects that were prepared earlier.
func (s *scene) lookUp(ctx context.Context, w *bindings.Clone) error {
	missing := 0
	var walk func(id int, depth int) error
	walk = func(id, depth int) error {
		o := &s.load.Tables.Objects[id-1]
		if o.Base || o.Origin != plan.Before || w.Objects[id].Handle != nil || depth > 4096 {
			return nil
		}
		dir, name := w.Base, s.load.FileName(id)
		if o.Parent != 0 {
			if err := walk(o.Parent, depth+1); err != nil {
				return err
			}
			dir = w.Objects[o.Parent].Handle
		}
		if dir == nil || !ops.PlainName([]byte(name)) {
			missing++
			return nil
		}
		h, _, err := s.fs.Lookup(ctx, dir, name)
		switch {
		case Fatal(err):
			return err
		case err != nil:
			missing++
		default:
			w.Objects[id].Handle = h
		}
		return nil
	}
	for i := range s.load.Tables.Objects {
		if err := walk(i+1, 0); err != nil {
			return err
		}
	}
	if missing > 0 {
		s.opt.Note("%d objects that the workload expects are not in %s", missing, s.opt.Directory)
	}
	return nil
}
