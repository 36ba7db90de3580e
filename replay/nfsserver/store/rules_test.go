package store

import (
	"math"
	"testing"
)

var (
	rules = &Rules{Info: &Info{MaxName: 255, MaxSymlink: 10, MaxXattr: 10, MaxFileSize: math.MaxInt64, CloneAlign: 4}}
	fixed = &Rules{Info: &Info{ReadOnly: true}}
	loose = &Rules{Info: rules.Info, NoPermissions: true}
	owner = &Cred{UID: 7, GID: 7}
	other = &Cred{UID: 8, GID: 8}
)

func TestMayRename(t *testing.T) {
	attr := func(id uint64, typ Type, mode uint32) *Attr {
		return &Attr{Handle: Handle{ID: id}, Type: typ, Mode: mode, UID: 7, GID: 7}
	}
	open, shut, sticky := attr(1, Directory, 0o777), attr(2, Directory, 0o755), attr(3, Directory, 0o1777)
	file, dir, closed := attr(4, Regular, 0o644), attr(5, Directory, 0o777), attr(6, Directory, 0o555)
	for name, c := range map[string]struct {
		r                     *Rules
		c                     *Cred
		from, to, object, old *Attr
		want                  error
	}{
		"in open directories":                {rules, other, open, open, file, nil, nil},
		"out of one that is shut":            {rules, other, shut, open, file, nil, ErrAccess},
		"into one that is shut":              {rules, other, open, shut, file, nil, ErrAccess},
		"nobody asks":                        {loose, other, shut, shut, file, nil, nil},
		"read-only":                          {fixed, owner, open, open, file, nil, ErrROFS},
		"another's out of a sticky one":      {rules, other, sticky, open, file, nil, ErrPerm},
		"another's over one in a sticky one": {rules, other, open, sticky, file, file, ErrPerm},
		"a directory elsewhere":              {rules, other, open, sticky, dir, nil, nil},
		"one that is closed, elsewhere":      {rules, other, open, sticky, closed, nil, ErrAccess},
		"one that is closed, here":           {rules, other, open, open, closed, nil, nil},
		"a file over a directory":            {rules, owner, open, open, file, dir, ErrExist},
		"a directory over a file":            {rules, owner, open, open, dir, file, ErrExist},
		"a file over a file":                 {rules, owner, open, open, file, file, nil},
	} {
		if err := c.r.MayRename(c.c, c.from, c.to, c.object, c.old); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestCheckFound(t *testing.T) {
	file, dir := &Attr{Type: Regular, UID: 7}, &Attr{Type: Directory, UID: 7}
	size := SetAttr{Mask: SetSize}
	for name, c := range map[string]struct {
		r         *Rules
		c         *Cred
		a         *Attr
		how       Create
		exclusive bool
		cut       bool
		want      error
	}{
		"unchecked":             {rules, other, file, Create{}, false, false, nil},
		"cut":                   {rules, owner, file, Create{Set: size}, false, true, nil},
		"cut a directory":       {rules, owner, dir, Create{Set: size}, false, false, nil},
		"cut another's":         {rules, other, file, Create{Set: size}, false, false, ErrAccess},
		"cut what is read-only": {fixed, owner, file, Create{Set: size}, false, true, ErrROFS},
		"guarded":               {rules, owner, file, Create{Mode: Guarded}, true, false, ErrExist},
		"exclusive, repeated":   {rules, owner, file, Create{Mode: Exclusive}, true, false, nil},
		"exclusive":             {rules, owner, file, Create{Mode: Exclusive}, false, false, ErrExist},
	} {
		cut, err := c.r.CheckFound(c.c, c.a, &c.how, c.exclusive)
		if err != c.want || err == nil && cut != c.cut {
			t.Errorf("%s: %v %v", name, cut, err)
		}
	}
}

func TestCheckSetAttr(t *testing.T) {
	file := &Attr{Type: Regular, UID: 7, Ctime: Time{Sec: 1}}
	for name, c := range map[string]struct {
		r    *Rules
		c    *Cred
		typ  Type
		set  SetAttr
		want error
	}{
		"the guard matches":     {rules, owner, Regular, SetAttr{Guard: &Time{Sec: 1}}, nil},
		"the guard does not":    {rules, owner, Regular, SetAttr{Guard: &Time{Sec: 2}}, ErrNotSync},
		"another's mode":        {rules, other, Regular, SetAttr{Mask: SetMode}, ErrPerm},
		"nobody asks":           {loose, other, Regular, SetAttr{Mask: SetMode}, nil},
		"the size":              {rules, owner, Regular, SetAttr{Mask: SetSize, Size: math.MaxInt64}, nil},
		"too large":             {rules, owner, Regular, SetAttr{Mask: SetSize, Size: math.MaxInt64 + 1}, ErrFBig},
		"the size of directory": {rules, owner, Directory, SetAttr{Mask: SetSize}, ErrIsDir},
		"the size of a link":    {rules, owner, Symlink, SetAttr{Mask: SetSize}, ErrInval},
	} {
		a := *file
		a.Type = c.typ
		if err := c.r.CheckSetAttr(c.c, &a, &c.set); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestCopyLength(t *testing.T) {
	for _, c := range []struct {
		size, src, dst, length uint64
		same                   bool
		want                   uint64
		err, clone             error
	}{
		{10, 0, 0, 0, false, 10, nil, nil},
		{10, 4, 0, 0, false, 6, nil, nil},
		{10, 4, 0, 6, false, 6, nil, nil}, // up to the end
		{10, 4, 0, 5, false, 5, nil, ErrInval},
		{10, 4, 0, 7, false, 6, nil, ErrInval},
		{10, 3, 0, 0, false, 7, nil, ErrInval},
		{10, 4, 2, 4, false, 4, nil, ErrInval},
		{10, 11, 0, 0, false, 0, ErrInval, nil},
		{10, 0, math.MaxInt64 - 8, 0, false, 0, ErrFBig, nil},
		{10, 0, 4, 4, true, 4, nil, nil},
		{10, 0, 4, 5, true, 0, ErrInval, nil},
		{10, 4, 0, 5, true, 0, ErrInval, nil},
	} {
		n, err := rules.CopyLength(c.size, c.src, c.dst, c.length, c.same)
		if n != c.want || err != c.err {
			t.Errorf("%+v: %d %v", c, n, err)
		}
		if err != nil {
			continue
		}
		if err := rules.CheckClone(c.size, c.src, c.dst, c.length); err != c.clone {
			t.Errorf("%+v: clone %v", c, err)
		}
	}
}

func TestCheckNames(t *testing.T) {
	long := make([]byte, 300)
	for i := range long {
		long[i] = 'x'
	}
	for _, c := range []struct {
		what string
		got  error
		want error
	}{
		{"no name", rules.CheckName(nil), ErrBadName},
		{"..", rules.CheckName([]byte("..")), ErrBadName},
		{"a/b", rules.CheckName([]byte("a/b")), ErrBadName},
		{"255 bytes", rules.CheckName(long[:255]), nil},
		{"256 bytes", rules.CheckName(long[:256]), ErrNameTooLong},
		{"no text", rules.CheckText(nil), ErrInval},
		{"10 bytes of text", rules.CheckText(long[:10]), nil},
		{"11 bytes of text", rules.CheckText(long[:11]), ErrNameTooLong},
		{"no attribute", rules.CheckXattr(nil, nil), ErrInval},
		{"an attribute of 250 bytes", rules.CheckXattr(long[:250], long[:10]), nil},
		{"an attribute of 251 bytes", rules.CheckXattr(long[:251], nil), ErrNameTooLong},
		{"a value of 11 bytes", rules.CheckXattr([]byte("a"), long[:11]), ErrXattrTooBig},
		{"a device", rules.CheckNode(owner, Block), ErrPerm},
		{"a device, nobody asks", loose.CheckNode(owner, Block), nil},
		{"root's device", rules.CheckNode(&Cred{}, Character), nil},
		{"a FIFO", rules.CheckNode(owner, FIFO), nil},
		{"a file as a node", rules.CheckNode(&Cred{}, Regular), ErrBadType},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}
