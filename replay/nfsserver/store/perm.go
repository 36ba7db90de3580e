package store

// Permission bits of Permits, those of "other" in a mode.
const (
	MayExecute = 1
	MayWrite   = 2
	MayRead    = 4
)

// Permits reports whether owner and mode of an object, or its ACL, give c all of the bits
// in want.
func Permits(c *Cred, a *Attr, want uint32) bool {
	if c.UID == 0 {
		// Root executes only what somebody may execute.
		return want&MayExecute == 0 || a.Type == Directory || a.Mode&0o111 != 0
	}
	if a.ACLs != nil && a.ACLs.Access != nil {
		return a.ACLs.Access.permits(c, a, want)
	}
	mode := a.Mode
	switch {
	case c.UID == a.UID:
		mode >>= 6
	case c.In(a.GID):
		mode >>= 3
	}
	return mode&want == want
}

// PermitsData is Permits for the data of a file that the caller is taken to have
// open: its owner may read and write it, and who may execute it may read it,
// since the server cannot tell the one from the other.
func PermitsData(c *Cred, a *Attr, want uint32) bool {
	return c.Bypass || c.UID == a.UID || Permits(c, a, want) ||
		want == MayRead && a.Type == Regular && Permits(c, a, MayExecute)
}

// NewMode is the mode that a change of attributes leaves: who gives a file away, or
// sets its size, loses the set-ID bits, and only members of a group may set its
// set-GID bit.
func (s *SetAttr) NewMode(c *Cred, a *Attr) uint32 {
	if s.Mask&SetMode != 0 {
		mode := s.Mode & ModeMask
		gid := a.GID
		if s.Mask&SetGID != 0 {
			gid = s.GID
		}
		if c.UID != 0 && !c.In(gid) {
			mode &^= ModeSetGID
		}
		return mode
	}
	if s.Mask&(SetUID|SetGID) != 0 && a.Type != Directory {
		return WithoutSetID(a.Mode)
	}
	if s.Mask&SetSize != 0 && c.UID != 0 {
		return WithoutSetID(a.Mode)
	}
	return a.Mode
}

// WithoutSetID is a mode after its file was written: without set-UID, and
// without set-GID where it means that (with no group execution it means
// mandatory locks).
func WithoutSetID(mode uint32) uint32 {
	if mode&0o010 != 0 {
		mode &^= ModeSetGID
	}
	return mode &^ ModeSetUID
}

// NewObject fills the attributes that an object has when c makes it in a
// directory: type, mode, owner, group, and the ACLs that it inherits.
func NewObject(c *Cred, dir *Attr, t Type, defaultMode uint32, s *SetAttr, a *Attr) error {
	a.Type, a.Mode, a.UID, a.GID = t, defaultMode, c.UID, c.GID
	if dir.Mode&ModeSetGID != 0 {
		a.GID = dir.GID
	}
	if s != nil {
		if s.Mask&SetUID != 0 {
			if c.UID != 0 && s.UID != c.UID {
				return ErrPerm
			}
			a.UID = s.UID
		}
		if s.Mask&SetGID != 0 {
			if c.UID != 0 && s.GID != a.GID && !c.In(s.GID) {
				return ErrPerm
			}
			a.GID = s.GID
		}
		if s.Mask&SetMode != 0 {
			a.Mode = s.Mode & ModeMask
			if t != Directory && c.UID != 0 && !c.In(a.GID) {
				a.Mode &^= ModeSetGID
			}
		}
	}
	if t == Directory && dir.Mode&ModeSetGID != 0 {
		a.Mode |= ModeSetGID
	}
	if d := dir.ACLs; d != nil && d.Default != nil && t != Symlink {
		var access ACL
		access, a.Mode = d.Default.inherit(a.Mode)
		a.ACLs = newACLs(access, nil)
		if t == Directory {
			a.ACLs = newACLs(access, d.Default)
		}
	}
	return nil
}
