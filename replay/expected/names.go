package expected

import (
	"cmp"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Name is a name in a directory of the plan.
type Name struct {
	Dir  int
	Name string
}

// Presence says whether a name is there.
type Presence uint8

// What is known of a name.
const (
	Unknown Presence = iota
	Present
	Absent
)

// directory is what is known of the names in a directory.
type directory struct {
	names  map[string]*entry
	taken  int // how many of them are there, or may be
	doubts int // how often all of them became unknown
}

type entry struct {
	presence Presence
	doubts   int // of the directory, when this was noted
	object   int // 0: not known
	latest   time.Time
	listed   []byte // handle that a listing gave
}

// maxNames bounds the names that are followed.
const maxNames = 1 << 20

// entry is what is known of a name; nil if that is nothing.
func (l *State) entry(n Name) *entry {
	d := l.names[n.Dir]
	if d == nil {
		return nil
	}
	return d.entry(n.Name)
}

func (d *directory) entry(name string) *entry {
	e := d.names[name]
	if e != nil && e.doubts != d.doubts {
		e.presence, e.object, e.doubts = Unknown, 0, d.doubts
	}
	return e
}

// newEntry adds a name; nil if there is no room.
func (l *State) newEntry(n Name) *entry {
	if l.named >= maxNames {
		l.more = true
		return nil
	}
	d := l.names[n.Dir]
	if d == nil {
		d = &directory{names: map[string]*entry{}}
		l.names[n.Dir] = d
	}
	e := &entry{doubts: d.doubts}
	d.names[n.Name] = e
	d.taken++
	l.named++
	return e
}

// becomes changes what is known of a name.
func (l *State) becomes(n Name, e *entry, p Presence) {
	d := l.names[n.Dir]
	if e.presence != Absent {
		d.taken--
	}
	if e.presence = p; p != Absent {
		d.taken++
	}
}

// put notes the new state of a name. A call concurrent with an earlier one about the same name
// leaves the state open.
func (l *State) put(c *Call, n Name, p Presence, object int) {
	if n.Dir == 0 || n.Name == "" || c.Op != nil && l.load.Above(n.Dir) {
		return
	}
	e := l.entry(n)
	if e == nil {
		if e = l.newEntry(n); e == nil {
			return
		}
	}
	if e.latest.After(c.Sent) {
		p = Unknown
	}
	if c.Replied.After(e.latest) {
		e.latest = c.Replied
	}
	if p == Unknown && e.presence == Present {
		// It may still have the name: that is unknown.
		if f := l.files[e.object]; f != nil {
			f.checked.hazy = true
		}
		l.becomes(n, e, Unknown)
		return
	}
	if e.presence == Present {
		l.link(e.object, -1)
	}
	l.becomes(n, e, p)
	if e.object, e.listed = object, nil; p == Present {
		l.link(object, 1)
	}
}

// link counts the known names of an object.
func (l *State) link(object, by int) {
	if object == 0 {
		return
	}
	if l.links[object] += by; l.links[object] <= 0 {
		delete(l.links, object)
	}
	if f := l.files[object]; f != nil {
		f.checked.gone = l.links[object] == 0
	}
}

// Link notes a name from before the replay.
func (l *State) Link(n Name, object int) { l.put(&Call{}, n, Present, object) }

// Named is the object that has a name; 0 if that is not known, or nothing has it.
func (l *State) Named(n Name) int {
	if e := l.entry(n); e != nil && e.presence == Present {
		return e.object
	}
	return 0
}

// Presence says whether a name is there.
func (l *State) Presence(n Name) Presence {
	if e := l.entry(n); e != nil {
		return e.presence
	}
	return Unknown
}

// Empty reports whether nothing is known that has, or may have, a name in a directory. It is false if there
// are more names than are followed.
func (l *State) Empty(dir int) bool {
	d := l.names[dir]
	return !l.more && (d == nil || d.taken == 0)
}

// naming applies the effect of a step on names.
func (l *State) naming(c *Call, s *step) {
	put := func(dir int, name []byte, p Presence, object int) {
		if s.lost {
			p, object = Unknown, 0
		} else if s.done != succeeded {
			return // a refusal changes nothing
		}
		l.put(c, Name{dir, string(name)}, p, object)
	}
	if from, to, ok := s.renames(); ok {
		l.renamed(c, s, from, to)
		return
	}
	s.eachName(put)
}

// eachName calls f for the names that a step gives to objects, or takes from them, if it succeeds. A RENAME is left to renames.
func (s *step) eachName(f func(dir int, name []byte, p Presence, object int)) {
	made := s.object
	if s.at < 0 && made == s.before {
		made = s.target()
	}
	switch a := s.args.(type) {
	case *nfs3.CREATE3args:
		f(s.before, a.Where.Name, Present, made)
	case *nfs3.MKDIR3args:
		f(s.before, a.Where.Name, Present, made)
	case *nfs3.SYMLINK3args:
		f(s.before, a.Where.Name, Present, made)
	case *nfs3.MKNOD3args:
		f(s.before, a.Where.Name, Present, made)
	case *nfs3.LINK3args:
		f(s.saved, a.Link.Name, Present, s.before)
	case *nfs3.REMOVE3args:
		f(s.before, a.Object.Name, Absent, 0)
	case *nfs3.RMDIR3args:
		f(s.before, a.Object.Name, Absent, 0)
	case *nfs4.CREATE4args:
		f(s.before, a.Objname, Present, s.object)
	case *nfs4.OPEN4args:
		if a.Openhow.Opentype == nfs4.OPEN4_CREATE && a.Claim.Claim == nfs4.CLAIM_NULL {
			f(s.before, a.Claim.File, Present, s.object)
		}
	case *nfs4.LINK4args:
		f(s.before, a.Newname, Present, s.saved)
	case *nfs4.REMOVE4args:
		f(s.before, a.Target, Absent, 0)
	}
}

// renames are the names of a RENAME; ok is false if the step is none.
func (s *step) renames() (from, to Name, ok bool) {
	switch a := s.args.(type) {
	case *nfs3.RENAME3args:
		dir := s.saved
		if dir == 0 {
			dir = s.before // one directory, named once
		}
		return Name{s.before, string(a.From.Name)}, Name{dir, string(a.To.Name)}, true
	case *nfs4.RENAME4args:
		return Name{s.saved, string(a.Oldname)}, Name{s.before, string(a.Newname)}, true
	}
	return from, to, false
}

// Changed calls f for what an op changes if all of it succeeds, except for bytes: names that it gives or takes (of an object 0),
// and objects whose owner, mode or access control list it sets.
func (l *State) Changed(o *plan.Op, names func(Name), rights func(object int)) {
	args := l.args.Of(o)
	if !o.Modifies || args == nil {
		return
	}
	eachStep(o, args, func(s *step) {
		if from, to, ok := s.renames(); ok {
			names(from)
			names(to)
		}
		s.eachName(func(dir int, name []byte, _ Presence, _ int) { names(Name{dir, string(name)}) })
		switch a := s.args.(type) {
		case *nfs3.SETATTR3args:
			if w := sattr(&a.NewAttributes); w.mode != nil || w.owner {
				rights(s.before)
			}
		case *nfs4.SETATTR4args:
			x, err := a.ObjAttributes.Attrs()
			if w := fattr(&a.ObjAttributes); err != nil || w.mode != nil || w.owner || x.Has(nfs4.FATTR4_ACL) || x.Has(nfs4.FATTR4_DACL) || x.Has(nfs4.FATTR4_MODE_SET_MASKED) {
				rights(s.object)
			}
		case *nfsacl.SETACL3args:
			rights(s.before)
		}
	})
}

// renamed applies a RENAME. Two names of the same object both stay (RFC 1813, section 3.3.14).
func (l *State) renamed(c *Call, s *step, from, to Name) {
	object := 0
	if e := l.entry(from); e != nil && e.presence == Present {
		object = e.object
	}
	if object == 0 {
		object = s.target()
	}
	old := l.entry(to)
	switch {
	case s.lost:
		l.put(c, from, Unknown, 0)
		l.put(c, to, Unknown, 0)
	case s.done != succeeded || from == to:
	case object > 0 && old != nil && old.presence == Present && old.object == object:
	case object == 0 && old != nil && old.presence != Absent:
		l.put(c, from, Unknown, 0) // it may be the same object
		l.put(c, to, Present, 0)
	default:
		l.put(c, to, Present, object)
		l.put(c, from, Absent, 0)
	}
}

// doubt discards what is known of the names in a call whose arguments cannot be read.
func (l *State) doubt(c *Call) {
	for _, id := range l.load.Objects(c.Op) {
		if d := l.names[id]; d != nil {
			d.doubts++
			d.taken = len(d.names)
		}
	}
}

// Entry is what is known of a name.
type Entry struct {
	Name
	Presence Presence // Present or Absent
	Object   int      // that it leads to; 0 if that is not known
	Listed   []byte   // handle that a listing gave for it; nil if none did
}

// Names are the names known to exist or not to exist, in the order of directories and names. open
// is how many other changed names are in neither state.
func (l *State) Names() (list []Entry, open int) {
	l.eachName(func(n Name, e *entry) {
		if e.presence == Unknown {
			open++
			return
		}
		list = append(list, Entry{n, e.presence, e.object, e.listed})
	})
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Name.Name, b.Name.Name)) })
	return list, open
}

func (l *State) eachName(f func(Name, *entry)) {
	for dir, d := range l.names {
		for name := range d.names {
			f(Name{dir, name}, d.entry(name))
		}
	}
}
