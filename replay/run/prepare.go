package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Prepared counts what was made before the replay.
type Prepared struct {
	Directories int    `json:"directories"`
	Files       int    `json:"files"`
	Others      int    `json:"others"` // links, devices, …
	Bytes       uint64 `json:"bytes"`
	Sparse      int    `json:"sparse"` // files too large to be written in full
	Failed      int    `json:"failed"`
}

// Limits of the preparation.
const (
	// maxFull is the largest size of a file that is written in full, in bytes;
	// of a larger one only what the capture tells.
	maxFull = 1 << 30
	// writeSize is how much is written at a time.
	writeSize = 128 << 10
	// writers is how many files are written at a time.
	writers = 8
)

// statusNoEnt and statusExist have the same numbers in all versions.
const (
	statusNoEnt  = uint32(nfs3.NFS3ERR_NOENT)
	statusExist  = uint32(nfs3.NFS3ERR_EXIST)
	statusAccess = uint32(nfs3.NFS3ERR_ACCES)
	statusPerm   = uint32(nfs3.NFS3ERR_PERM)
)

// found is a directory on the target and what is above it.
type found struct {
	handle []byte
	chain  [][]byte // handles of the directories above that could be had, nearest last
	depth  int      // of the first of the chain below the root
}

// find walks to a directory from as near to the root as the server lets it. It
// follows no symbolic link. With create the last component is made if it is
// not there; allow is asked to let it pass first.
func find(ctx context.Context, fs client.FS, dir string, create bool, allow func(parent []byte, name string)) (*found, error) {
	names := components(dir)
	var root []byte
	var err error
	start := 0
	for ; start <= len(names); start++ {
		root, err = fs.Root(ctx, "/"+join(names[:start]))
		// A server need not know the directories above an export.
		if err == nil || !errors.As(err, new(*client.StatusError)) && !errors.As(err, new(*client.DeniedError)) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the directory %s on the target: %w", dir, err)
	}
	f := &found{handle: root, depth: start}
	for i := start; i < len(names); i++ {
		f.chain = append(f.chain, f.handle)
		h, a, err := fs.Lookup(ctx, f.handle, names[i])
		switch {
		case client.IsStatus(err, statusNoEnt) && create && i == len(names)-1:
			allow(f.handle, names[i])
			if h, err = fs.Mkdir(ctx, f.handle, names[i], client.Mode(0o755)); err != nil {
				return nil, fmt.Errorf("the directory %s on the target cannot be made: %w", dir, err)
			}
		case err != nil:
			return nil, fmt.Errorf("the directory %s on the target: %s: %w", dir, names[i], err)
		case a.Type == client.Symlink:
			return nil, fmt.Errorf("the directory %s on the target: %s is a symbolic link", dir, names[i])
		case a.Type != client.Directory:
			return nil, fmt.Errorf("the directory %s on the target: %s is no directory", dir, names[i])
		}
		f.handle = h
	}
	return f, nil
}

func join(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += "/"
		}
		out += n
	}
	return out
}

// preparer makes the objects of one world.
type preparer struct {
	*engine
	ctx   context.Context
	fs    client.FS
	w     *world
	state []uint8 // of each object: 0 not seen, 1 under way, 2 done
	files []int
	done  *Prepared
	bytes atomic.Uint64
	mu    sync.Mutex // of done and notes, while files are written
}

// prepare makes what the plan says was there.
func (e *engine) prepare(ctx context.Context, fs client.FS, w *world, done *Prepared) error {
	p := &preparer{engine: e, ctx: ctx, fs: fs, w: w, state: make([]uint8, len(w.objects)), done: done}
	t := &e.load.Tables
	for i := range t.Objects {
		if t.Objects[i].Base {
			p.attributes(&t.Objects[i], w.objects[i+1].handle)
		}
	}
	for i := range t.Objects {
		if t.Objects[i].Origin == plan.Before {
			if err := p.object(i + 1); err != nil {
				return err
			}
		}
	}
	if err := p.contents(); err != nil {
		return err
	}
	done.Bytes += p.bytes.Load()
	// Names of what has several come last: all directories are there.
	for i := range t.Objects {
		o := &t.Objects[i]
		if o.Origin != plan.Before || w.objects[i+1].handle == nil {
			continue
		}
		for _, l := range o.Links {
			name := nameOf(l.Name, l.NameBytes)
			dir := w.objects[l.Parent].handle
			if dir == nil || !ops.PlainName([]byte(name)) {
				continue
			}
			if err := fs.Link(ctx, w.objects[i+1].handle, dir, name); err != nil && !e.opt.Reuse {
				p.failed("link %s: %v", name, err)
			}
		}
	}
	// So do lists of access: what is made below a directory would inherit them.
	if err := p.acls(); err != nil {
		return err
	}
	return ctx.Err()
}

// acls sets the access control lists that the plan knows of. That a server has
// none is no failure: the calls of the plan show what it means.
func (p *preparer) acls() error {
	fs, ok := p.fs.(interface {
		SetACL(ctx context.Context, handle []byte, acl *nfsacl.Secattr) error
	})
	for i := range p.load.Tables.Objects {
		o := &p.load.Tables.Objects[i]
		h := p.w.objects[i+1].handle
		if len(o.ACL) == 0 || !ok || h == nil || o.Origin != plan.Before || !p.load.below(i+1) {
			continue
		}
		var r xdr.Reader
		var acl nfsacl.Secattr
		r.Reset(o.ACL, len(o.ACL))
		if acl.Decode(&r); r.Failed() {
			p.failed("%s: its access control list cannot be read", o.Path)
			continue
		}
		err := fs.SetACL(p.ctx, h, &acl)
		var denied *client.DeniedError
		if fatal(err) && !errors.As(err, &denied) {
			return err
		}
		if err != nil {
			p.record.note("preparation: access control lists of some objects could not be set: %v", err)
		}
	}
	return nil
}

func nameOf(name string, raw []byte) string {
	if raw != nil {
		return string(raw)
	}
	return name
}

// fatal reports whether an error ends the preparation: there is no answer any
// more. What the guard refused was not sent, and the rest can go on.
func fatal(err error) bool {
	var status *client.StatusError
	var impossible errImpossible
	return err != nil && !errors.As(err, &status) && !errors.As(err, &impossible) && guarded(err) == nil
}

func (p *preparer) failed(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done.Failed++
	p.record.note("preparation: "+format, args...)
}

// object makes an object after the directory that holds it.
func (p *preparer) object(id int) error {
	o := &p.load.Tables.Objects[id-1]
	if p.state[id] != 0 || o.Base || o.Origin != plan.Before || p.w.objects[id].handle != nil {
		return nil
	}
	p.state[id] = 1
	dir := p.w.base
	name := nameOf(o.Name, o.NameBytes)
	if o.Parent != 0 {
		if err := p.object(o.Parent); err != nil {
			return err
		}
		dir = p.w.objects[o.Parent].handle
	}
	if name == "" {
		name = fmt.Sprintf("rpcrdma-replay-object-%d", id)
	}
	p.state[id] = 2
	switch {
	case dir == nil:
		if p.load.below(id) {
			p.failed("%s: the directory that holds it is not there", o.Path)
		}
		return nil
	case !p.load.below(id):
		return nil
	case !ops.PlainName([]byte(name)):
		p.failed("%s: %q is not the name of an entry", o.Path, name)
		return nil
	}
	h, err := p.make(o, dir, name)
	if client.IsStatus(err, statusExist) && p.opt.Reuse {
		var a client.Attr
		if h, a, err = p.fs.Lookup(p.ctx, dir, name); err == nil && a.Type != typeOf(o.Type) {
			err = fmt.Errorf("there is something else of that name")
		}
	}
	if fatal(err) {
		return fmt.Errorf("%s: %w", o.Path, err)
	}
	if err != nil {
		p.failed("%s: %v", o.Path, err)
		return nil
	}
	p.w.objects[id].handle = h
	p.attributes(o, h)
	return nil
}

func typeOf(s string) client.Type {
	switch s {
	case "dir":
		return client.Directory
	case "symlink":
		return client.Symlink
	case "fifo":
		return client.Fifo
	case "socket":
		return client.Socket
	case "block":
		return client.Block
	case "char":
		return client.Character
	}
	return client.Regular
}

func (p *preparer) make(o *plan.Object, dir []byte, name string) ([]byte, error) {
	mode := func(def uint32) client.SetAttr {
		if o.Mode != nil {
			def = *o.Mode & 0o7777
		}
		return client.Mode(def)
	}
	switch t := typeOf(o.Type); t {
	case client.Directory:
		p.done.Directories++
		return p.fs.Mkdir(p.ctx, dir, name, mode(0o755))
	case client.Symlink:
		p.done.Others++
		target := o.Target
		if target == "" {
			target = "unknown"
		}
		return p.fs.Symlink(p.ctx, dir, name, target, client.SetAttr{})
	case client.Regular:
		p.done.Files++
		f, err := p.fs.Create(p.ctx, dir, name, mode(0o644), !p.opt.Reuse)
		if err != nil {
			return nil, err
		}
		if o.Size > 0 || len(o.Content) > 0 {
			p.files = append(p.files, o.ID)
		}
		return f.Handle, p.fs.Close(p.ctx, f)
	default:
		p.done.Others++
		return p.fs.Mknod(p.ctx, dir, name, t, o.Major, o.Minor, mode(0o644))
	}
}

// attributes sets owner and mode. Not to be allowed to is no failure: the calls
// of the plan show what it means.
func (p *preparer) attributes(o *plan.Object, h []byte) {
	a := client.SetAttr{UID: o.UID, GID: o.GID}
	if typeOf(o.Type) != client.Symlink {
		a.Mode = o.Mode
		if o.Mode != nil {
			m := *o.Mode & 0o7777
			a.Mode = &m
		}
	}
	if a.UID == nil && a.GID == nil && a.Mode == nil {
		return
	}
	err := p.fs.Setattr(p.ctx, h, a)
	if client.IsStatus(err, statusPerm) || client.IsStatus(err, statusAccess) {
		p.record.note("preparation: owners and modes of some objects could not be set")
	} else if err != nil && a.Mode != nil {
		if err = p.fs.Setattr(p.ctx, h, client.SetAttr{Mode: a.Mode}); err != nil {
			p.record.note("preparation: modes of some objects could not be set: %v", err)
		}
	}
}

// contents fills the files, several at a time.
func (p *preparer) contents() error {
	work := make(chan int)
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	stop := make(chan struct{})
	for range min(writers, len(p.files)) {
		wg.Go(func() {
			buf, err := p.fs.Alloc(writeSize)
			if err == nil {
				defer p.fs.Free(buf)
			}
			for id := range work {
				if err == nil {
					err = p.content(id, buf)
				}
				if fatal(err) {
					once.Do(func() { first = err; close(stop) })
				} else if err != nil {
					p.failed("content of %s: %v", p.load.Tables.Objects[id-1].Path, err)
					err = nil
				}
			}
		})
	}
feed:
	for _, id := range p.files {
		select {
		case work <- id:
		case <-stop:
			break feed
		case <-p.ctx.Done():
			break feed
		}
	}
	close(work)
	wg.Wait()
	if first != nil {
		return first
	}
	return p.ctx.Err()
}

// content writes what the plan knows of a file, and the pattern between.
func (p *preparer) content(id int, buf []byte) error {
	o := &p.load.Tables.Objects[id-1]
	dir, name := p.w.base, nameOf(o.Name, o.NameBytes)
	if o.Parent != 0 {
		dir = p.w.objects[o.Parent].handle
	}
	if name == "" {
		name = fmt.Sprintf("rpcrdma-replay-object-%d", id)
	}
	f, err := p.fs.Open(p.ctx, dir, name, true)
	if err != nil {
		return err
	}
	size := o.Size
	for _, x := range o.Content {
		size = max(size, x.Offset+x.Length)
	}
	full := size <= maxFull && p.load.Tables.Header.Payload != plan.Sparse
	next := uint64(0)
	for _, x := range o.Content {
		if full && x.Offset > next {
			if err = p.fill(f, o, next, x.Offset, -1, buf); err != nil {
				break
			}
		}
		if p.load.Data != nil {
			if err = p.fill(f, o, x.Offset, x.Offset+x.Length, x.At, buf); err != nil {
				break
			}
		}
		next = max(next, x.Offset+x.Length)
	}
	if err == nil && full && next < size {
		err = p.fill(f, o, next, size, -1, buf)
	}
	if err == nil && !full {
		p.mu.Lock()
		p.done.Sparse++
		p.mu.Unlock()
		err = p.fs.Setattr(p.ctx, f.Handle, client.SetAttr{Size: &size})
	}
	if err == nil {
		err = p.fs.Commit(p.ctx, f)
	}
	return errors.Join(err, p.fs.Close(p.ctx, f))
}

// fill writes a range: of the plan's data from at on, or the pattern if at is
// negative.
func (p *preparer) fill(f *client.File, o *plan.Object, from, to uint64, at int64, buf []byte) error {
	for from < to {
		b := buf[:min(uint64(len(buf)), to-from)]
		if at >= 0 {
			if _, err := p.load.Data.ReadAt(b, at); err != nil {
				return fmt.Errorf("the plan's data: %w", err)
			}
		} else {
			plan.FillPattern(b, o.ID, from)
		}
		n, err := p.fs.Write(p.ctx, f, from, b, false)
		if err != nil {
			return err
		}
		if n == 0 {
			return errors.New("the server takes nothing")
		}
		from += uint64(n)
		if at >= 0 {
			at += int64(n)
		}
		p.bytes.Add(uint64(n))
	}
	return nil
}
