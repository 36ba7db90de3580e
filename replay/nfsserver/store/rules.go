package store

import "bytes"

// Rules are the checks that every Store makes, whatever keeps its objects.
type Rules struct {
	Info *Info
	// NoPermissions: everyone may do everything.
	NoPermissions bool
}

// CheckName says whether a name can be one of a directory entry: ErrBadName,
// ErrNameTooLong or nil.
func (r *Rules) CheckName(name []byte) error {
	switch {
	case len(name) == 0, string(name) == ".", string(name) == "..":
		return ErrBadName
	case uint64(len(name)) > uint64(r.Info.MaxName):
		return ErrNameTooLong
	case bytes.IndexByte(name, '/') >= 0, bytes.IndexByte(name, 0) >= 0:
		return ErrBadName
	}
	return nil
}

// Writable says whether anything may be changed.
func (r *Rules) Writable() error {
	if r.Info.ReadOnly {
		return ErrROFS
	}
	return nil
}

// Permits is the function of that name, if permissions matter.
func (r *Rules) Permits(c *Cred, a *Attr, want uint32) bool {
	return r.NoPermissions || Permits(c, a, want)
}

// PermitsData is the function of that name, if permissions matter.
func (r *Rules) PermitsData(c *Cred, a *Attr, want uint32) bool {
	return r.NoPermissions || PermitsData(c, a, want)
}

// Allowed tells which of the wanted permissions c has (ACCESS).
func (r *Rules) Allowed(c *Cred, a *Attr, want AccessMask) AccessMask {
	if r.NoPermissions {
		c = &Cred{}
	}
	var m AccessMask
	if Permits(c, a, MayRead) {
		m |= AccessRead | AccessXattrRead | AccessXattrList
	}
	if Permits(c, a, MayExecute) {
		if a.Type == Directory {
			m |= AccessLookup
		} else {
			m |= AccessExecute
		}
	}
	// A read-only file system does not keep anyone from writing to a device.
	device := a.Type == Block || a.Type == Character || a.Type == FIFO || a.Type == Socket
	if Permits(c, a, MayWrite) && (!r.Info.ReadOnly || device) {
		m |= AccessModify | AccessExtend | AccessXattrWrite
		if a.Type == Directory && Permits(c, a, MayExecute) {
			m |= AccessDelete
		}
	}
	return m & want
}

// MayUnlink reports whether c may take a name of an object out of a directory,
// sticky bit included.
func (r *Rules) MayUnlink(c *Cred, dir, object *Attr) error {
	if !r.Permits(c, dir, MayWrite|MayExecute) {
		return ErrAccess
	}
	if dir.Mode&ModeSticky != 0 && !r.NoPermissions && c.UID != 0 && c.UID != dir.UID && c.UID != object.UID {
		return ErrPerm
	}
	return r.Writable()
}

// MayRemove says whether c may remove an object by Remove or Rmdir.
func (r *Rules) MayRemove(c *Cred, dir, object *Attr, rmdir bool) error {
	switch {
	case rmdir && object.Type != Directory:
		return ErrNotDir
	case !rmdir && object.Type == Directory:
		return ErrIsDir
	}
	return r.MayUnlink(c, dir, object)
}

// MayRename says whether c may move an object to a place where old is, nil if there is nothing.
func (r *Rules) MayRename(c *Cred, from, to, object, old *Attr) error {
	if err := r.MayUnlink(c, from, object); err != nil {
		return err
	}
	if !r.Permits(c, to, MayWrite|MayExecute) {
		return ErrAccess
	}
	if object.Type == Directory && from.Handle != to.Handle && !r.Permits(c, object, MayWrite) {
		return ErrAccess // its ".." changes
	}
	if old == nil {
		return nil
	}
	if (object.Type == Directory) != (old.Type == Directory) {
		return ErrExist
	}
	return r.MayUnlink(c, to, old)
}

// CheckSetAttr says whether c may set attributes of an object that has a.
func (r *Rules) CheckSetAttr(c *Cred, a *Attr, s *SetAttr) error {
	if s.Guard != nil && *s.Guard != a.Ctime {
		return ErrNotSync
	}
	if !r.NoPermissions {
		if err := s.permission(c, a); err != nil {
			return err
		}
	}
	switch {
	case s.Mask&SetSize == 0:
		return nil
	case a.Type == Directory:
		return ErrIsDir
	case a.Type != Regular:
		return ErrInval
	}
	return r.Fits(s.Size, 0)
}

// permission says whether c may set attributes of an object that has a.
func (s *SetAttr) permission(c *Cred, a *Attr) error {
	if c.UID == 0 {
		return nil
	}
	owner := c.UID == a.UID
	if s.Mask&SetMode != 0 && !owner {
		return ErrPerm
	}
	if s.Mask&SetUID != 0 && (!owner || s.UID != a.UID) {
		return ErrPerm
	}
	if s.Mask&SetGID != 0 && (!owner || s.GID != a.GID && !c.In(s.GID)) {
		return ErrPerm
	}
	if s.Mask&(SetAtime|SetMtime) != 0 && !owner {
		return ErrPerm
	}
	if s.Mask&(SetAtimeNow|SetMtimeNow) != 0 && !owner && !Permits(c, a, MayWrite) {
		return ErrAccess
	}
	if s.Mask&SetSize != 0 && !PermitsData(c, a, MayWrite) {
		return ErrAccess
	}
	return nil
}

// CheckFound says whether Create succeeds if there is an object with the name, and whether it cuts
// it. exclusive says that the object was made with the verifier.
func (r *Rules) CheckFound(c *Cred, a *Attr, how *Create, exclusive bool) (cut bool, err error) {
	switch {
	case how.Mode == Exclusive && exclusive:
		return false, nil
	case how.Mode != Unchecked:
		return false, ErrExist
	case a.Type != Regular || how.Set.Mask&SetSize == 0:
		return false, nil
	case !r.PermitsData(c, a, MayWrite):
		return false, ErrAccess
	case r.Info.ReadOnly:
		return false, ErrROFS
	}
	return true, r.Fits(how.Set.Size, 0)
}

// CheckText says whether a symbolic link may have a text.
func (r *Rules) CheckText(text []byte) error {
	switch {
	case len(text) == 0:
		return ErrInval
	case len(text) > int(r.Info.MaxSymlink):
		return ErrNameTooLong
	}
	return nil
}

// CheckNode says whether c may make a special file of a type.
func (r *Rules) CheckNode(c *Cred, t Type) error {
	switch t {
	case Block, Character:
		if c.UID != 0 && !r.NoPermissions {
			return ErrPerm
		}
	case Socket, FIFO:
	default:
		return ErrBadType
	}
	return nil
}

// maxXattrName is XATTR_NAME_MAX of Linux without "user.".
const maxXattrName = 255 - len("user.")

// CheckXattr says whether an extended attribute may have a name and a value.
func (r *Rules) CheckXattr(name, value []byte) error {
	switch {
	case len(name) == 0 || bytes.IndexByte(name, 0) >= 0:
		return ErrInval
	case len(name) > maxXattrName:
		return ErrNameTooLong
	case len(value) > int(r.Info.MaxXattr):
		return ErrXattrTooBig
	}
	return nil
}

// Fits says whether a file may reach so far.
func (r *Rules) Fits(offset, length uint64) error {
	if offset > r.Info.MaxFileSize || length > r.Info.MaxFileSize-offset {
		return ErrFBig
	}
	return nil
}

// CopyLength is how much Copy or Clone would copy from a file of a size; same: the files are one.
func (r *Rules) CopyLength(size, src, dst, length uint64, same bool) (uint64, error) {
	if src > size {
		return 0, ErrInval
	}
	if left := size - src; length == 0 || length > left {
		length = left
	}
	if err := r.Fits(dst, length); err != nil {
		return 0, err
	}
	if same && src < dst+length && dst < src+length {
		return 0, ErrInval
	}
	return length, nil
}

// CheckClone checks the range of a Clone from a file of a size.
func (r *Rules) CheckClone(size, src, dst, length uint64) error {
	align := r.Info.CloneAlign
	if length > size-src || src%align != 0 || dst%align != 0 || length%align != 0 && src+length != size {
		return ErrInval
	}
	return nil
}

// CheckDirectory says whether an object of a type is a directory.
func CheckDirectory(t Type) error {
	if t != Directory {
		return ErrNotDir
	}
	return nil
}

// CheckRegular says whether an object of a type is a regular file.
func CheckRegular(t Type) error {
	switch t {
	case Directory:
		return ErrIsDir
	case Regular:
		return nil
	}
	return ErrWrongType
}
