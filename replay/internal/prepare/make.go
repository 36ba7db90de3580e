package prepare

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// make creates what the plan says was there.
func (s *scene) make(ctx context.Context, w *bindings.Clone) error {
	p := &maker{scene: s, ctx: ctx, w: w, state: make([]uint8, len(w.Objects))}
	t := &p.load.Tables
	for i := range t.Objects {
		if t.Objects[i].Base {
			p.attributes(&t.Objects[i], p.w.Objects[i+1].Handle)
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
	p.done.Bytes += p.bytes.Load()
	// Further names come last, when all directories exist. So do access control lists:
	// what is created in a directory later would inherit them.
	p.links()
	if err := p.acls(); err != nil {
		return err
	}
	return ctx.Err()
}

// maker makes the objects of one clone.
type maker struct {
	*scene
	ctx   context.Context
	w     *bindings.Clone
	state []uint8 // of each object: 0 not seen, 1 under way, 2 done
	files []int
	bytes atomic.Uint64
	mu    sync.Mutex // of done and Note, while files are written
}

// links gives objects their further names.
func (p *maker) links() {
	for i := range p.load.Tables.Objects {
		o := &p.load.Tables.Objects[i]
		if o.Origin != plan.Before || p.w.Objects[i+1].Handle == nil {
			continue
		}
		for _, l := range o.Links {
			name := workload.Text(l.Name, l.NameBytes)
			dir := p.w.Objects[l.Parent].Handle
			if dir == nil || !ops.PlainName([]byte(name)) {
				continue
			}
			if err := p.fs.Link(p.ctx, p.w.Objects[i+1].Handle, dir, name); err != nil && !p.opt.Reuse {
				p.failed("link %s: %v", name, err)
			}
		}
	}
}

// acls sets the access control lists that the plan knows of. A server without them is
// no failure: the calls of the plan will show the difference.
func (p *maker) acls() error {
	fs, ok := p.fs.(interface {
		SetACL(ctx context.Context, handle []byte, acl *nfsacl.Secattr) error
	})
	for i := range p.load.Tables.Objects {
		o := &p.load.Tables.Objects[i]
		h := p.w.Objects[i+1].Handle
		if len(o.ACL) == 0 || !ok || h == nil || o.Origin != plan.Before || !p.load.Below(i+1) {
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
		if Fatal(err) && !errors.As(err, &denied) {
			return err
		}
		if err != nil {
			p.opt.Note("preparation: access control lists of some objects could not be set: %v", err)
		}
	}
	return nil
}

// Fatal reports whether an error ends the preparation, since the server does not answer
// any more, or only puts calls off. A refusal by the server or the guard concerns one object, and the rest goes
// on.
func Fatal(err error) bool {
	var status *client.StatusError
	var refused *guard.Refused
	return err != nil && !errors.As(err, &status) && !errors.As(err, &refused) || errors.Is(err, client.ErrPutOff)
}

func (p *maker) failed(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done.Failed++
	p.opt.Note("preparation: "+format, args...)
}

// object makes an object, after the directory that contains it.
func (p *maker) object(id int) error {
	o := &p.load.Tables.Objects[id-1]
	if p.state[id] != 0 || o.Base || o.Origin != plan.Before || p.w.Objects[id].Handle != nil {
		return nil
	}
	p.state[id] = 1
	dir := p.w.Base
	name := p.load.FileName(id)
	if o.Parent != 0 {
		if err := p.object(o.Parent); err != nil {
			return err
		}
		dir = p.w.Objects[o.Parent].Handle
	}
	p.state[id] = 2
	switch {
	case dir == nil:
		if p.load.Below(id) {
			p.failed("%s: the directory that holds it is not there", o.Path)
		}
		return nil
	case !p.load.Below(id):
		return nil
	case !ops.PlainName([]byte(name)):
		p.failed("%s: %q is not the name of an entry", o.Path, name)
		return nil
	}
	h, err := p.create(o, dir, name)
	if client.IsStatus(err, statusExist) && p.opt.Reuse {
		var a client.Attr
		if h, a, err = p.fs.Lookup(p.ctx, dir, name); err == nil && a.Type != TypeOf(o.Type) {
			err = errors.New("an object of another type has that name")
		}
	}
	if Fatal(err) {
		return fmt.Errorf("%s: %w", o.Path, err)
	}
	if err != nil {
		p.failed("%s: %v", o.Path, err)
		return nil
	}
	p.w.Objects[id].Handle = h
	p.attributes(o, h)
	return nil
}

// TypeOf is the type of an object of the plan.
func TypeOf(s string) client.Type {
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

func (p *maker) create(o *plan.Object, dir []byte, name string) ([]byte, error) {
	mode := func(def uint32) client.SetAttr {
		if o.Mode != nil {
			def = *o.Mode & 0o7777
		}
		return client.Mode(def)
	}
	switch t := TypeOf(o.Type); t {
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
		} else {
			p.w.Objects[o.ID].Prepared, p.w.Objects[o.ID].Emptied = true, !p.opt.Reuse
		}
		return f.Handle, p.fs.Close(p.ctx, f)
	default:
		p.done.Others++
		return p.fs.Mknod(p.ctx, dir, name, t, o.Major, o.Minor, mode(0o644))
	}
}

// owner is the number of a user or a group. NFSv4 writes owners as text, which is a number unless client and server
// share names (RFC 8881, section 5.9); nobody here knows the number of a name.
func owner(n *uint32, text string) *uint32 {
	if n != nil {
		return n
	}
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil
	}
	id := uint32(v)
	return &id
}

// attributes sets owner and mode. Lacking the permission is not a failure: the calls of the
// plan will show the difference.
func (p *maker) attributes(o *plan.Object, h []byte) {
	a := client.SetAttr{UID: owner(o.UID, o.Owner), GID: owner(o.GID, o.Group)}
	if TypeOf(o.Type) != client.Symlink {
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
		p.opt.Note("preparation: owners and modes of some objects could not be set")
	} else if err != nil && a.Mode != nil {
		if err = p.fs.Setattr(p.ctx, h, client.SetAttr{Mode: a.Mode}); err != nil {
			p.opt.Note("preparation: modes of some objects could not be set: %v", err)
		}
	}
}
