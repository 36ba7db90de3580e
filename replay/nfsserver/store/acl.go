package store

import (
	"cmp"
	"slices"
)

// ACLTag is what an entry of an ACL is for, in the order of an ACL.
type ACLTag uint8

// Tags: the owner, another user, the owning group, another group, the limit of
// all but the owner and the others, and the others.
const (
	ACLUserObj ACLTag = iota + 1
	ACLUser
	ACLGroupObj
	ACLGroup
	ACLMask
	ACLOther
)

// ACLEntry gives permissions: bits of MayRead, MayWrite and MayExecute.
type ACLEntry struct {
	Tag  ACLTag
	Perm uint8
	ID   uint32 // of ACLUser and ACLGroup
}

// ACL is a POSIX access control list (IEEE 1003.1e, draft 17), sorted by tag
// and ID. One that is shared is never changed.
type ACL []ACLEntry

// ACLs are the lists of an object.
type ACLs struct {
	// Access is nil if it says no more than the mode of the object. Its first entries, its mask and its last entry follow the mode.
	Access ACL
	// Default is what new objects in a directory get; nil if there is none.
	Default ACL
}

// MaxACL is how many entries a list may have (NFS_ACL_MAX_ENTRIES).
const MaxACL = 1024

// ACLStore is a Store that keeps ACLs. They are among the attributes.
type ACLStore interface {
	Store
	// SetACL sets those lists that are not nil; an empty list removes. The mode
	// follows the access list. Lists are the store's from then on.
	SetACL(c *Cred, h Handle, access, def *ACL, w *Wcc) error
}

// entrySize is the size of an entry in memory accounts, in bytes.
const entrySize = 8

// Size is the memory that the lists take, in bytes.
func (a *ACLs) Size() int {
	if a == nil {
		return 0
	}
	return 64 + entrySize*(len(a.Access)+len(a.Default))
}

// WithAccess returns a with a different access list; nil if nothing is left.
func (a *ACLs) WithAccess(acl ACL) *ACLs {
	var def ACL
	if a != nil {
		def = a.Default
	}
	return newACLs(acl, def)
}

// WithDefault returns a with a different default list; nil if nothing is left.
func (a *ACLs) WithDefault(acl ACL) *ACLs {
	var access ACL
	if a != nil {
		access = a.Access
	}
	return newACLs(access, acl)
}

func newACLs(access, def ACL) *ACLs {
	if len(access) == 0 && len(def) == 0 {
		return nil
	}
	return &ACLs{Access: access, Default: def}
}

// ModeACL appends the list that is equivalent to a mode.
func ModeACL(dst ACL, mode uint32) ACL {
	return append(dst, ACLEntry{Tag: ACLUserObj, Perm: uint8(mode >> 6 & 7)}, ACLEntry{Tag: ACLGroupObj, Perm: uint8(mode >> 3 & 7)}, ACLEntry{Tag: ACLOther, Perm: uint8(mode & 7)})
}

// Normal sorts a list and reports whether it is valid: it has an owner, a group and others,
// nobody twice, and a mask if there is another user or group.
func (l ACL) Normal() error {
	if len(l) > MaxACL {
		return ErrInval
	}
	for i := range l {
		if e := &l[i]; e.Tag != ACLUser && e.Tag != ACLGroup {
			e.ID = 0
		}
	}
	slices.SortFunc(l, func(a, b ACLEntry) int { return cmp.Or(cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.ID, b.ID)) })
	var seen [ACLOther + 1]int
	for i, e := range l {
		if e.Tag < ACLUserObj || e.Tag > ACLOther || e.Perm > 7 {
			return ErrInval
		}
		if i > 0 && e.Tag == l[i-1].Tag && e.ID == l[i-1].ID {
			return ErrInval
		}
		seen[e.Tag]++
	}
	if seen[ACLUserObj] != 1 || seen[ACLGroupObj] != 1 || seen[ACLOther] != 1 || seen[ACLUser]+seen[ACLGroup] > 0 && seen[ACLMask] == 0 {
		return ErrInval
	}
	return nil
}

// find is the entry of a tag that occurs once at most; nil if there is none.
func (l ACL) find(t ACLTag) *ACLEntry {
	for i := range l {
		if l[i].Tag == t {
			return &l[i]
		}
	}
	return nil
}

// group is the entry that the group bits of a mode stand for: the mask if there
// is one.
func (l ACL) group() *ACLEntry {
	if m := l.find(ACLMask); m != nil {
		return m
	}
	return l.find(ACLGroupObj)
}

// Mode returns the mode of an object with a normal list. all reports that the mode is
// equivalent to the list.
func (l ACL) Mode(mode uint32) (now uint32, all bool) {
	now = mode&^0o777 | uint32(l[0].Perm)<<6 | uint32(l.group().Perm)<<3 | uint32(l[len(l)-1].Perm)
	return now, len(l) == 3
}

// WithMode returns a copy of a normal list after chmod.
func (l ACL) WithMode(mode uint32) ACL {
	l = slices.Clone(l)
	l[0].Perm, l.group().Perm, l[len(l)-1].Perm = uint8(mode>>6&7), uint8(mode>>3&7), uint8(mode&7)
	return l
}

// inherit is the access list, and the mode, of an object that is made with a
// mode in a directory with the default list l. The list is nil if the mode says
// all of it.
func (l ACL) inherit(mode uint32) (ACL, uint32) {
	l = slices.Clone(l)
	for at, e := range []*ACLEntry{&l[len(l)-1], l.group(), &l[0]} {
		e.Perm &= uint8(mode >> (3 * at) & 7)
	}
	mode, all := l.Mode(mode)
	if all {
		return nil, mode
	}
	return l, mode
}

// permits is Permits by a normal list, for all but root.
func (l ACL) permits(c *Cred, a *Attr, want uint32) bool {
	mask := uint8(7)
	if m := l.find(ACLMask); m != nil {
		mask = m.Perm
	}
	w := uint8(want)
	found := false
	for _, e := range l {
		switch e.Tag {
		case ACLUserObj:
			if c.UID == a.UID {
				return e.Perm&w == w
			}
		case ACLUser:
			if c.UID == e.ID {
				return e.Perm&mask&w == w
			}
		case ACLGroupObj, ACLGroup:
			if e.Tag == ACLGroupObj && c.In(a.GID) || e.Tag == ACLGroup && c.In(e.ID) {
				found = true
				if e.Perm&w == w {
					return e.Perm&mask&w == w
				}
			}
		case ACLOther:
			return !found && e.Perm&w == w
		}
	}
	return false
}
