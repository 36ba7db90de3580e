package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
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

type entry struct {
	presence Presence
	object   int // 0: not known
	latest   time.Time
	listed   []byte // handle that a listing gave
}

// maxNames bounds the names that are followed.
const maxNames = 1 << 20

// put notes the new state of a name. A call concurrent with an earlier one about the same name
// leaves the state open.
func (l *Ledger) put(c *Call, n Name, p Presence, object int) {
	if n.Dir == 0 || n.Name == "" || c.Op != nil && l.load.Above(n.Dir) {
		return
	}
	e := l.names[n]
	if e == nil {
		if len(l.names) >= maxNames {
			return
		}
		e = &entry{}
		l.names[n] = e
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
		e.presence = Unknown
		return
	}
	if e.presence == Present {
		l.link(e.object, -1)
	}
	if e.presence, e.object, e.listed = p, object, nil; p == Present {
		l.link(object, 1)
	}
}

// link counts the known names of an object.
func (l *Ledger) link(object, by int) {
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
func (l *Ledger) Link(n Name, object int) { l.put(&Call{}, n, Present, object) }

// Named is the object that has a name; 0 if that is not known, or nothing has it.
func (l *Ledger) Named(n Name) int {
	if e := l.names[n]; e != nil && e.presence == Present {
		return e.object
	}
	return 0
}

// Empty reports whether nothing is known that has, or may have, a name in a directory.
func (l *Ledger) Empty(dir int) bool {
	for n, e := range l.names {
		if n.Dir == dir && e.presence != Absent {
			return false
		}
	}
	return true
}

// named applies the effect of a step on names.
func (l *Ledger) named(c *Call, s *step) {
	put := func(dir int, name []byte, p Presence, object int) {
		if s.lost {
			p, object = Unknown, 0
		} else if s.done != succeeded {
			return // a refusal changes nothing
		}
		l.put(c, Name{dir, string(name)}, p, object)
	}
	made := s.object
	if s.at < 0 && made == s.before {
		made = s.target(0)
	}
	switch a := s.args.(type) {
	case *nfs3.CREATE3args:
		put(s.before, a.Where.Name, Present, made)
	case *nfs3.MKDIR3args:
		put(s.before, a.Where.Name, Present, made)
	case *nfs3.SYMLINK3args:
		put(s.before, a.Where.Name, Present, made)
	case *nfs3.MKNOD3args:
		put(s.before, a.Where.Name, Present, made)
	case *nfs3.LINK3args:
		put(s.saved, a.Link.Name, Present, s.before)
	case *nfs3.REMOVE3args:
		put(s.before, a.Object.Name, Absent, 0)
	case *nfs3.RMDIR3args:
		put(s.before, a.Object.Name, Absent, 0)
	case *nfs3.RENAME3args:
		to := s.saved
		if to == 0 {
			to = s.before // one directory, named once
		}
		l.renamed(c, s, Name{s.before, string(a.From.Name)}, Name{to, string(a.To.Name)})
	case *nfs4.CREATE4args:
		put(s.before, a.Objname, Present, s.object)
	case *nfs4.OPEN4args:
		if a.Openhow.Opentype == nfs4.OPEN4_CREATE && a.Claim.Claim == nfs4.CLAIM_NULL {
			put(s.before, a.Claim.File, Present, s.object)
		}
	case *nfs4.LINK4args:
		put(s.before, a.Newname, Present, s.saved)
	case *nfs4.REMOVE4args:
		put(s.before, a.Target, Absent, 0)
	case *nfs4.RENAME4args:
		l.renamed(c, s, Name{s.saved, string(a.Oldname)}, Name{s.before, string(a.Newname)})
	}
}

// renamed applies a RENAME. Two names of the same object both stay (RFC 1813, section 3.3.14).
func (l *Ledger) renamed(c *Call, s *step, from, to Name) {
	object := 0
	if e := l.names[from]; e != nil && e.presence == Present {
		object = e.object
	}
	if object == 0 {
		object = s.target(0)
	}
	switch {
	case s.lost:
		l.put(c, from, Unknown, 0)
		l.put(c, to, Unknown, 0)
	case s.done != succeeded || from == to:
	case object > 0 && l.names[to] != nil && l.names[to].presence == Present && l.names[to].object == object:
	case object == 0 && l.names[to] != nil && l.names[to].presence != Absent:
		l.put(c, from, Unknown, 0) // it may be the same object
		l.put(c, to, Present, 0)
	default:
		l.put(c, to, Present, object)
		l.put(c, from, Absent, 0)
	}
}

// doubt discards what is known of the names in a call whose arguments cannot be read.
func (l *Ledger) doubt(c *Call) {
	dirs := l.load.Objects(c.Op)
	for n, e := range l.names {
		if slices.Contains(dirs, n.Dir) {
			e.presence, e.object = Unknown, 0
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
func (l *Ledger) Names() (list []Entry, open int) {
	for n, e := range l.names {
		if e.presence == Unknown {
			open++
			continue
		}
		list = append(list, Entry{n, e.presence, e.object, e.listed})
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Name.Name, b.Name.Name)) })
	return list, open
}
