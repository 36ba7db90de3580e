package expected

import (
	"maps"
	"time"
)

// Snapshot is what a State knows, for a run that goes on in another process.
type Snapshot struct {
	Files   map[int]savedFile `json:"files,omitempty"`
	Names   []savedName       `json:"names,omitempty"`
	More    bool              `json:"more,omitempty"`
	Links   map[int]int       `json:"links,omitempty"`
	Whole   map[int]bool      `json:"whole,omitempty"`
	ACLs    bool              `json:"acls,omitempty"`
	Account savedAccount      `json:"account"`
}

type savedAccount struct {
	Written uint64   `json:"written"`
	Run     uint64   `json:"run"`
	Never   []uint64 `json:"never"`
}

type savedFile struct {
	Fills   []savedFill     `json:"fills,omitempty"`
	Recent  []savedChange   `json:"recent,omitempty"`
	Old     time.Time       `json:"old,omitzero"`
	Checked savedAttributes `json:"checked"`
	Latest  time.Time       `json:"latest,omitzero"`
	Asked   Asked           `json:"asked,omitzero"`
}

type savedFill struct {
	From   uint64   `json:"from"`
	To     uint64   `json:"to"`
	Kind   fillKind `json:"kind,omitempty"`
	Object int      `json:"object,omitempty"`
	Shift  uint64   `json:"shift,omitempty"`
	Read   bool     `json:"read,omitempty"`
}

type savedChange struct {
	savedFill
	Replied time.Time `json:"replied"`
}

type savedAttributes struct {
	Size   uint64       `json:"size,omitempty"`
	Sized  bool         `json:"sized,omitempty"`
	Mode   *uint32      `json:"mode,omitempty"`
	UID    *uint32      `json:"uid,omitempty"`
	GID    *uint32      `json:"gid,omitempty"`
	Mtime  *time.Time   `json:"mtime,omitempty"`
	Atime  *time.Time   `json:"atime,omitempty"`
	Target []byte       `json:"target,omitempty"`
	Device *Device      `json:"device,omitempty"`
	ACL    []byte       `json:"acl,omitempty"`
	Xattrs []savedXattr `json:"xattrs,omitempty"`
	Made   bool         `json:"made,omitempty"`
	Hazy   bool         `json:"hazy,omitempty"`
	Gone   bool         `json:"gone,omitempty"`
}

type savedXattr struct {
	Name []byte `json:"name"`
	Hash string `json:"hash,omitempty"`
}

type savedName struct {
	Dir      int       `json:"dir"`
	Name     []byte    `json:"name"`
	Presence Presence  `json:"presence,omitempty"`
	Object   int       `json:"object,omitempty"`
	Latest   time.Time `json:"latest,omitzero"`
	Listed   []byte    `json:"listed,omitempty"`
}

func saved(from, to uint64, f fill) savedFill {
	return savedFill{from, to, f.kind, f.object, f.shift, f.read}
}

func (s *savedFill) fill() fill { return fill{s.Kind, s.Object, s.Shift, s.Read} }

// Snapshot returns what the State knows.
func (l *State) Snapshot() *Snapshot {
	a := &l.account
	s := &Snapshot{Files: map[int]savedFile{}, More: l.more, Links: l.links, Whole: l.whole, ACLs: l.acls, Account: savedAccount{a.written, a.run, a.never[:]}}
	for id, f := range l.files {
		k := &f.checked
		x := savedFile{Old: f.recent.old, Latest: f.latest, Asked: f.asked,
			Checked: savedAttributes{k.size, k.sized, k.mode, k.uid, k.gid, k.mtime, k.atime, k.target, k.device, k.acl, nil, k.made, k.hazy, k.gone}}
		for n, h := range k.xattrs {
			x.Checked.Xattrs = append(x.Checked.Xattrs, savedXattr{[]byte(n), h})
		}
		for _, y := range f.fills {
			x.Fills = append(x.Fills, saved(y.from, y.to, y.fill))
		}
		// In the order in which they are replaced.
		for i := range f.recent.list {
			y := &f.recent.list[(f.recent.next+i)%len(f.recent.list)]
			x.Recent = append(x.Recent, savedChange{saved(y.from, y.to, y.fill), y.replied})
		}
		s.Files[id] = x
	}
	l.eachName(func(n Name, e *entry) {
		s.Names = append(s.Names, savedName{n.Dir, []byte(n.Name), e.presence, e.object, e.latest, e.listed})
	})
	return s
}

// Restore gives a new State what another one knew.
func (l *State) Restore(s *Snapshot) {
	l.acls, l.more = s.ACLs, s.More
	l.account.written, l.account.run = s.Account.Written, s.Account.Run
	copy(l.account.never[:], s.Account.Never)
	maps.Copy(l.links, s.Links)
	maps.Copy(l.whole, s.Whole)
	for id, x := range s.Files {
		k := &x.Checked
		f := &file{latest: x.Latest, asked: x.Asked, recent: recent{old: x.Old},
			checked: attributes{k.Size, k.Sized, k.Mode, k.UID, k.GID, k.Mtime, k.Atime, k.Target, k.Device, k.ACL, nil, k.Made, k.Hazy, k.Gone}}
		for _, y := range k.Xattrs {
			if f.checked.xattrs == nil {
				f.checked.xattrs = map[string]string{}
			}
			f.checked.xattrs[string(y.Name)] = y.Hash
			l.xattrs++
		}
		for i := range x.Fills {
			y := &x.Fills[i]
			f.fills = append(f.fills, filled{y.From, y.To, y.fill()})
		}
		for i := range x.Recent {
			y := &x.Recent[i]
			f.recent.list = append(f.recent.list, change{y.From, y.To, y.fill(), y.Replied})
		}
		l.files[id] = f
	}
	for i := range s.Names {
		x := &s.Names[i]
		n := Name{x.Dir, string(x.Name)}
		e := l.entry(n)
		if e == nil {
			if e = l.newEntry(n); e == nil {
				return
			}
		}
		l.becomes(n, e, x.Presence)
		e.object, e.latest, e.listed = x.Object, x.Latest, x.Listed
	}
}
