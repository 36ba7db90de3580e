package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/plan"
)

func statusError(o *plan.Op, code uint32, symbol string) error {
	return &client.StatusError{Operation: extraName(o), Code: code, Symbol: symbol}
}

// Run executes a plan. It returns a report whenever the replay has begun, also
// beside an error. Cancelling ctx ends the run in order: calls under way are
// waited for a few seconds, and the report says that it was interrupted.
func Run(ctx context.Context, load *Workload, opt Options) (*Report, error) {
	opt = opt.withDefaults()
	if err := load.nothing(); err != nil {
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
	e := &engine{opt: opt, load: load, creds: credentials(&load.Tables), ctx: ctx, wake: make(chan struct{}, 1),
		listings: map[int]bool{}, confirms: map[int]bool{}, verifier: newVerifier(load, opt.Verify, opt.Ignore, opt.Relaxed),
		guard: guard.New(guard.Options{Write: opt.Write, Owner: ownerPrefix(opt.Tag)})}
	e.record = newRecorder(&e.opt, load)
	e.scan()
	for i := range opt.Clones {
		e.worlds = append(e.worlds, newWorld(load, i, opt.Tag))
	}
	e.conns = make([]map[int]*conn, len(e.worlds))
	began := time.Now()
	var prepared Prepared
	if err := e.ready(ctx, &prepared); err != nil {
		return nil, err
	}
	if opt.PrepareOnly {
		r := e.report(began, time.Since(began))
		r.Planned, r.Setup.Prepared = 0, prepared
		return r, nil
	}
	defer e.hangUp()
	for _, w := range e.worlds {
		if err := e.dialAll(ctx, w); err != nil {
			return nil, err
		}
	}
	e.listenBack(ctx)
	defer e.closeBack()
	for _, w := range e.worlds {
		if err := e.establish(ctx, w); err != nil {
			return nil, err
		}
	}
	e.arrange()
	e.left = len(load.Ops) * len(e.worlds)
	began = time.Now()
	err = e.loop()
	took := time.Since(began)
	if e.flying == 0 {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		e.abolish(end)
		cancel()
	} else {
		e.record.note("%d calls were under way when the run ended", e.flying)
	}
	r := e.report(began, took)
	r.Setup.Prepared = prepared
	return r, err
}

// scan notes what the ops need of each other beside the graph.
func (e *engine) scan() {
	field := func(f *plan.Field) {
		switch f.Kind {
		case plan.FieldCookie, plan.FieldCookieVerf:
			e.listings[f.Op] = true
		case plan.FieldCtime:
			e.guards = true
		}
	}
	e.parents = map[int]int{}
	for _, o := range e.load.Ops {
		for i := range o.Args {
			field(&o.Args[i])
		}
		if o.Compound == nil {
			continue
		}
		// Which directory above the base holds which.
		for i := range o.Compound.Ops {
			if c := &o.Compound.Ops[i]; nfs4.NfsOpnum4(c.Op) == nfs4.OP_LOOKUP && i > 0 {
				above, to := objectAt(o, i-1), objectAt(o, i)
				if above > 0 && to > 0 && above != to && e.load.Tables.Objects[above-1].Origin == plan.Above {
					e.parents[to] = above
				}
			}
		}
		for i := range o.Compound.Ops {
			c := &o.Compound.Ops[i]
			for k := range c.Args {
				field(&c.Args[k])
				if nfs4.NfsOpnum4(c.Op) == nfs4.OP_OPEN_CONFIRM && c.Args[k].Kind == plan.FieldState {
					e.confirms[c.Args[k].Ref] = true
				}
			}
		}
	}
}

// ready finds the directory and makes the files.
func (e *engine) ready(ctx context.Context, prepared *Prepared) error {
	fs, end, err := e.open(ctx)
	if err != nil {
		return fmt.Errorf("looking at the target: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		end(ctx)
		cancel()
	}()
	make := e.opt.Prepare && e.opt.Write
	top, err := find(ctx, fs, e.opt.Directory, make, e.guard.MakeBase)
	if err != nil {
		return err
	}
	if make && !e.opt.Reuse {
		if err := empty(ctx, fs, top.handle, e.opt.Directory); err != nil {
			return err
		}
	}
	for _, h := range top.chain {
		e.guard.Above(h)
	}
	e.guard.Base(top.handle)
	for _, w := range e.worlds {
		if err := e.place(ctx, fs, w, top, make); err != nil {
			return err
		}
		if make {
			if err := e.prepare(ctx, fs, w, prepared); err != nil {
				return fmt.Errorf("preparation: %w", err)
			}
		} else if err := e.lookUp(ctx, fs, w); err != nil {
			return fmt.Errorf("looking up what the plan uses: %w", err)
		}
	}
	return nil
}

// empty makes sure that nothing is in the directory.
func empty(ctx context.Context, fs client.FS, dir []byte, name string) error {
	first := ""
	if err := fs.Readdir(ctx, dir, func(e client.Entry) bool { first = e.Name; return false }); err != nil {
		return fmt.Errorf("listing the directory %s on the target: %w", name, err)
	}
	if first != "" {
		return fmt.Errorf("the directory %s on the target is not empty (%q)", name, first)
	}
	return nil
}

// place finds what stands for the base, and for the directories above it, in
// one world.
func (e *engine) place(ctx context.Context, fs client.FS, w *world, top *found, make bool) error {
	chain, names := top.chain, components(e.opt.Directory)
	w.base = top.handle
	if len(e.worlds) > 1 {
		name := fmt.Sprintf("clone%d", w.number+1)
		h, err := e.below(ctx, fs, top.handle, name, make)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", e.opt.Directory, name, err)
		}
		chain, names = append(append([][]byte(nil), chain...), top.handle), append(names, name)
		w.base = h
	}
	t := &e.load.Tables
	for i := range t.Objects {
		o := &t.Objects[i]
		if !o.Base {
			continue
		}
		base, chain, names := w.base, chain, names
		if name := nameOf(o.Name, o.NameBytes); name != "" {
			// Several directories were mounted: each is one below ours.
			h, err := e.below(ctx, fs, w.base, name, make)
			if err != nil {
				return fmt.Errorf("%s/%s: %w", e.opt.Directory, name, err)
			}
			base, chain, names = h, append(slices.Clone(chain), w.base), append(slices.Clone(names), name)
		}
		w.objects[i+1].handle = base
		if len(names) > 0 {
			w.names[i+1] = names[len(names)-1]
		}
		// Directories above the captured base stand for those above ours,
		// counted from below.
		up, left := e.parents[i+1], chain
		at := len(names) - 1
		for steps := 0; up > 0 && t.Objects[up-1].Origin == plan.Above && len(left) > 0 && steps < 64; steps++ {
			w.objects[up].handle = left[len(left)-1]
			left = left[:len(left)-1]
			if at--; at >= 0 {
				w.names[up] = names[at]
			}
			if e.parents[up] == 0 {
				w.root = w.objects[up].handle
			}
			up = e.parents[up]
		}
	}
	if e.rootIsBase() {
		w.root = w.base
	}
	w.noRoot = w.root == nil
	return nil
}

// below finds a directory by name, and makes it if it may.
func (e *engine) below(ctx context.Context, fs client.FS, dir []byte, name string, make bool) ([]byte, error) {
	if !ops.PlainName([]byte(name)) {
		return nil, fmt.Errorf("%q is no name of a directory", name)
	}
	h, _, err := fs.Lookup(ctx, dir, name)
	if client.IsStatus(err, statusNoEnt) && make {
		h, err = fs.Mkdir(ctx, dir, name, client.Mode(0o755))
	}
	return h, err
}

// rootIsBase reports whether the captured base is the server's root.
func (e *engine) rootIsBase() bool {
	for i := range e.load.Tables.Objects {
		if o := &e.load.Tables.Objects[i]; o.Base && o.Parent == 0 && nameOf(o.Name, o.NameBytes) == "" {
			for k := range e.load.Tables.Objects {
				if e.load.Tables.Objects[k].Origin == plan.Above {
					return false
				}
			}
			return true
		}
	}
	return false
}

// lookUp finds objects that were prepared earlier.
func (e *engine) lookUp(ctx context.Context, fs client.FS, w *world) error {
	missing := 0
	var walk func(id int, depth int) error
	walk = func(id, depth int) error {
		o := &e.load.Tables.Objects[id-1]
		if o.Base || o.Origin != plan.Before || w.objects[id].handle != nil || depth > 4096 {
			return nil
		}
		dir, name := w.base, nameOf(o.Name, o.NameBytes)
		if o.Parent != 0 {
			if err := walk(o.Parent, depth+1); err != nil {
				return err
			}
			dir = w.objects[o.Parent].handle
		}
		if name == "" {
			name = fmt.Sprintf("rpcrdma-replay-object-%d", id)
		}
		if dir == nil || !ops.PlainName([]byte(name)) {
			missing++
			return nil
		}
		h, _, err := fs.Lookup(ctx, dir, name)
		switch {
		case fatal(err):
			return err
		case err != nil:
			missing++
		default:
			w.objects[id].handle = h
		}
		return nil
	}
	for i := range e.load.Tables.Objects {
		if err := walk(i+1, 0); err != nil {
			return err
		}
	}
	if missing > 0 {
		e.record.note("%d objects that the workload expects are not in %s", missing, e.opt.Directory)
	}
	return nil
}

// progress tells how far the run is.
func (e *engine) progress() {
	p := Progress{Elapsed: time.Since(e.start), Total: len(e.load.Ops) * len(e.worlds), InFlight: e.flying, Bytes: e.bytes,
		Verdicts: e.record.verdicts, Phase: "replay", Retries: e.retried}
	p.Done = p.Total - e.left
	for _, c := range e.all {
		p.Parks += len(c.wait)
	}
	if len(e.agenda) > 0 {
		p.LateBy = max(0, p.Elapsed-e.agenda[0].due)
	}
	e.opt.Progress(p)
}

// hangUp closes all connections.
func (e *engine) hangUp() {
	for _, c := range e.all {
		_ = c.req.Close()
	}
	for _, c := range e.all {
		if e.flying == 0 {
			c.pool.close()
		}
	}
}
