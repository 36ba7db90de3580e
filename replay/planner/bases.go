package planner

import (
	"strings"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// finish decides what must be prepared, and fills the table.
func (s *space) finish() {
	for _, o := range s.objects {
		if o.origin == plan.Before && o.stale && !o.alive && !o.named && !o.isBase {
			o.origin = plan.Stale
		}
	}
	s.bases()
	for _, o := range s.objects {
		if o.into == nil {
			s.ref(o)
		}
	}
}

// bases finds the directories that stand for the mounted ones, and names objects that have no
// name.
func (s *space) bases() {
	children := map[*obj]int{}
	for k := range s.names {
		children[k.dir.real()]++
	}
	all := make([][]*obj, len(s.b.t.Servers)+1)
	for _, o := range s.objects {
		if o.into == nil {
			all[o.server] = append(all[o.server], o)
		}
	}
	for server := range s.b.t.Servers {
		s.basesOf(server+1, all[server+1], children)
	}
	base := map[int]*obj{}
	for _, o := range s.objects {
		if o.isBase && base[o.server] == nil {
			base[o.server] = o
		}
	}
	n := 0
	for _, o := range s.objects {
		if d := o.parent.real(); o.origin == plan.Before && o.named && d != nil && d.origin == plan.Created {
			// Its directory does not exist yet at preparation.
			o.named, o.nameClass = false, plan.Synthesised
			o.note(plan.NoteElsewhere, strings.ToValidUTF8(o.name, "?"))
		}
		if o.into != nil || o.isBase || o.named || o.origin == plan.Above || o.origin == plan.Stale {
			continue
		}
		n++
		o.name, o.named = "unnamed-"+itoa(n), true
		if base[o.server] == nil {
			base[o.server] = s.makeBase(o.server)
		}
		o.parent = base[o.server]
		if o.origin == plan.Created {
			o.note(plan.NoteNoDirectory, "")
		}
	}
	for _, o := range s.objects {
		if o.isBase {
			s.up[o.real()] = o.parent
			o.parent, o.name = nil, o.base
		}
		if o.parent != nil {
			o.parent = o.parent.real()
		}
	}
	s.several()
	for _, o := range s.objects {
		if s.outside(o) {
			o.origin = plan.Above
		}
	}
}

// basesOf finds the bases of a server among its objects.
func (s *space) basesOf(server int, all []*obj, children map[*obj]int) {
	if r := s.roots[server].real(); r != nil {
		s.descend(r, all)
	}
	var best *obj
	for _, o := range all {
		if o.isBase {
			best = nil
			break
		}
		if o.named || o.origin != plan.Before || !(o.typ == "dir" || o.typ == "" && children[o] > 0) {
			continue
		}
		if best == nil || children[o] > children[best] {
			best = o
		}
	}
	if best != nil {
		// The capture began after the mount: take the nameless directory with the most names.
		best.isBase, best.nameClass = true, plan.Inferred
	}
}

// descend goes from the root of a server to the mounted directory: to where another file system
// begins, or as long as a directory was only passed through.
func (s *space) descend(root *obj, all []*obj) {
	kids := map[*obj][]*obj{}
	for _, o := range all {
		if o.parent != nil {
			kids[o.parent.real()] = append(kids[o.parent.real()], o)
		}
	}
	found := false
	var down func(o *obj, depth int)
	down = func(o *obj, depth int) {
		for _, k := range kids[o] {
			switch {
			case k.typ != "dir" || k.origin == plan.Created || depth > 64:
			case k.isBase:
				found = true
				o.raise()
			case k.fsidKnown && root.fsidKnown && k.fsid != root.fsid:
				k.isBase, k.nameClass, found = true, plan.Exact, true
				o.raise()
			default:
				down(k, depth+1)
			}
		}
	}
	down(root, 0)
	if !found {
		root.isBase, root.origin = true, plan.Before
		if root.typ == "" {
			root.typ = "dir"
		}
	}
}

// raise marks a directory and those above it as not ours.
func (o *obj) raise() {
	for range 64 {
		if o = o.real(); o == nil || o.origin == plan.Created {
			return
		}
		o.origin = plan.Above
		o = o.parent
	}
}

func (s *space) makeBase(server int) *obj {
	o := s.add(server, plan.Before)
	o.typ, o.isBase = "dir", true
	o.note(plan.NoteMadeUp, "")
	return o
}

// several keeps the bases apart if there is more than one.
func (s *space) several() {
	var list []*obj
	for _, o := range s.objects {
		if o.isBase && o.into == nil {
			list = append(list, o)
		}
	}
	for i, o := range list {
		o.parent, o.name, o.named = nil, "", false
		if len(list) > 1 {
			o.name = "base-" + itoa(i+1)
		}
	}
}

// outside reports whether something from before the capture lies above the bases.
func (s *space) outside(o *obj) bool {
	if o.into != nil || o.origin != plan.Before {
		return false
	}
	for range 64 {
		if o = o.real(); o == nil || o.isBase {
			return false
		}
		if o.origin == plan.Above {
			return true
		}
		o = o.parent
	}
	return false
}

// promote makes a directory a base once it is known to be the root of another file
// system than the root of the server.
func (s *space) promote(o *obj) {
	r := s.roots[o.server].real()
	d := o.parent.real()
	if r == nil || !r.fsidKnown || o == r || o.fsid == r.fsid || d == nil || !d.fsidKnown || d.fsid != r.fsid ||
		o.origin != plan.Before || o.typ != "dir" || r.isBase {
		return
	}
	o.isBase, o.nameClass = true, plan.Exact
}
