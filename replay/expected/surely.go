package expected

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Surely calls f for the objects that a call has certainly changed, so that their change time
// must have moved on: at is the operation of a COMPOUND, -1 outside, and data says that the bytes
// of a file or the names of a directory changed, and not only attributes. Calls that may change
// nothing (setting a mode to its old value, an OPEN of an existing file) do not count. It has to
// be called before Done.
func (l *State) Surely(c *Call, f func(at, object int, data bool)) {
	if !c.Op.Modifies || c.Result == nil {
		return
	}
	args := l.args.Of(c.Op)
	if args == nil {
		return
	}
	eachStep(c.Op, args, func(s *step) {
		if done, n := executed(c.Result, s.at); done == succeeded {
			s.count = n
			l.surely(s, func(object int, data bool) {
				if object > 0 {
					f(s.at, object, data)
				}
			})
		}
	})
}

func (l *State) surely(s *step, f func(object int, data bool)) {
	switch a := s.args.(type) {
	case *nfs3.WRITE3args:
		if s.count > 0 {
			f(s.before, true)
		}
	case *nfs4.WRITE4args, *nfs4.COPY4args:
		if s.count > 0 {
			f(s.object, true)
		}
	case *nfs3.CREATE3args:
		if a.How.Mode == nfs3.GUARDED {
			f(s.before, true)
		}
	case *nfs3.MKDIR3args, *nfs3.SYMLINK3args, *nfs3.MKNOD3args, *nfs3.REMOVE3args, *nfs3.RMDIR3args:
		f(s.before, true)
	case *nfs3.LINK3args:
		f(s.before, false)
		f(s.saved, true)
	case *nfs3.RENAME3args:
		to := s.saved
		if to == 0 {
			to = s.before
		}
		l.moved(Name{s.before, string(a.From.Name)}, Name{to, string(a.To.Name)}, f)
	case *nfs4.CREATE4args:
		f(s.before, true)
	case *nfs4.REMOVE4args:
		f(s.before, true)
	case *nfs4.OPEN4args:
		if a.Openhow.Opentype == nfs4.OPEN4_CREATE && a.Openhow.How.Mode == nfs4.GUARDED4 {
			f(s.before, true)
		}
	case *nfs4.LINK4args:
		f(s.before, true)
		f(s.saved, false)
	case *nfs4.RENAME4args:
		l.moved(Name{s.saved, string(a.Oldname)}, Name{s.before, string(a.Newname)}, f)
	case *nfs4.SETXATTR4args, *nfs4.REMOVEXATTR4args:
		f(s.object, false)
	}
}

// moved is a RENAME, unless both names are of one object, so that nothing happens.
func (l *State) moved(from, to Name, f func(object int, data bool)) {
	if x, y := l.entry(from), l.entry(to); from == to || x == nil || x.presence != Present || x.object == 0 ||
		y != nil && y.presence != Absent && y.object == x.object {
		return
	}
	f(from.Dir, true)
	if to.Dir != from.Dir {
		f(to.Dir, true)
	}
}

// fresh reports whether a call certainly creates a new file, although it would also accept an
// existing one.
func (l *State) fresh(c *Call, s *step) bool {
	var n Name
	switch a := s.args.(type) {
	case *nfs3.CREATE3args:
		n = Name{s.before, string(a.Where.Name)}
	case *nfs4.OPEN4args:
		if a.Openhow.Opentype != nfs4.OPEN4_CREATE || a.Claim.Claim != nfs4.CLAIM_NULL {
			return false
		}
		n = Name{s.before, string(a.Claim.File)}
	default:
		return false
	}
	if s.done != succeeded || n.Dir == 0 || s.object == 0 || s.object == s.before {
		return false
	}
	if e := l.entry(n); e != nil {
		return e.presence == Absent && !e.latest.After(c.Sent)
	}
	return l.whole[n.Dir]
}

// Whole says that all names in a directory are known: it is new, or Link has been called for all
// of them.
func (l *State) Whole(dir int) { l.whole[dir] = true }

// AllKnown reports whether all names in a directory are known: Whole has said so, and there was room for them.
func (l *State) AllKnown(dir int) bool { return l.whole[dir] && !l.more }

// Heard reports whether a name was there at any time, or may have been.
func (l *State) Heard(n Name) bool { return l.entry(n) != nil }

// Listed notes the handle that a listing returned for a name.
func (l *State) Listed(dir int, name, handle []byte) {
	if e := l.entry(Name{dir, string(name)}); e != nil && e.presence == Present {
		e.listed = append([]byte(nil), handle...)
	}
}
