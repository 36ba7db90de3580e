package run

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// safety keeps calls that change something within the directory given. It
// looks at each of them as it will go out: every handle must be that of an
// object at or below the base, learned from the server on the way down from
// it, and every name a plain name.
type safety struct {
	load   *Workload
	inside []bool   // by object ID
	above  [][]byte // handles of directories above the base, none of which may be changed
}

func newSafety(w *Workload) *safety {
	s := &safety{load: w, inside: make([]bool, len(w.Tables.Objects)+1)}
	for id := range s.inside {
		s.inside[id] = id > 0 && w.below(id)
	}
	return s
}

// below reports whether an object of the plan is the base or below it. One
// without a known parent counts: its handle can only come from a reply about
// something below the base.
func (w *Workload) below(id int) bool {
	for steps := 0; id > 0 && steps <= len(w.Tables.Objects); steps++ {
		o := &w.Tables.Objects[id-1]
		if o.Origin == plan.Above {
			return false
		}
		if o.Base || o.Parent == 0 {
			return true
		}
		id = o.Parent
	}
	return false
}

// check says why an op that changes something is not safe; empty if it is, or
// changes nothing.
func (s *safety) check(o *plan.Op, w *world) string {
	if !o.Modifies {
		if op := s.writes(o); op != "" {
			return fmt.Sprintf("the plan says that it changes nothing, but it is %s", op)
		}
		return ""
	}
	if o.Compound != nil {
		return s.compound(o, w)
	}
	for i := range o.Args {
		if why := s.field(&o.Args[i], w); why != "" {
			return why
		}
	}
	return ""
}

func (s *safety) field(f *plan.Field, w *world) string {
	switch f.Kind {
	case plan.FieldHandle:
		if !s.inside[f.Ref] {
			return fmt.Sprintf("it changes something above the base (%s)", s.load.Tables.Objects[f.Ref-1].Path)
		}
		for _, h := range s.above {
			if bytes.Equal(h, w.objects[f.Ref].handle) {
				return "the server gave it the handle of a directory above the base"
			}
		}
	case plan.FieldName:
		return plainName(f.Opaque())
	}
	return ""
}

// plainName says why a name is none.
func plainName(b []byte) string {
	switch name := string(b); {
	case name == "." || name == "..":
		return fmt.Sprintf("the name %q leads elsewhere", name)
	case strings.ContainsAny(name, "/\x00"):
		return fmt.Sprintf("%q is no name", name)
	}
	return ""
}

// writes names what changes something in an op, empty if nothing does.
func (s *safety) writes(o *plan.Op) string {
	if o.Compound == nil {
		switch {
		case o.Program == 100003 && o.Version == 3 && changing3[o.Procedure]:
			return fmt.Sprintf("procedure %d", o.Procedure)
		case o.Program == 100227 && o.Procedure == 2:
			return "SETACL"
		}
		return ""
	}
	for i := range o.Compound.Ops {
		if c := &o.Compound.Ops[i]; changing4[nfs4.NfsOpnum4(c.Op)] || nfs4.NfsOpnum4(c.Op) == nfs4.OP_OPEN && creates(c) {
			return nfs4.OpName(c.Op)
		}
	}
	return ""
}

var changing3 = map[uint32]bool{2: true, 7: true, 8: true, 9: true, 10: true, 11: true, 12: true, 13: true, 14: true, 15: true}

var changing4 = map[nfs4.NfsOpnum4]bool{
	nfs4.OP_CREATE: true, nfs4.OP_LINK: true, nfs4.OP_REMOVE: true, nfs4.OP_RENAME: true, nfs4.OP_SETATTR: true,
	nfs4.OP_WRITE: true, nfs4.OP_OPENATTR: true, nfs4.OP_ALLOCATE: true, nfs4.OP_COPY: true, nfs4.OP_DEALLOCATE: true,
	nfs4.OP_WRITE_SAME: true, nfs4.OP_CLONE: true, nfs4.OP_SETXATTR: true, nfs4.OP_REMOVEXATTR: true, nfs4.OP_LAYOUTCOMMIT: true,
}

// creates reports whether an OPEN may make a file or change one.
func creates(c *plan.CompoundOp) bool {
	opentype, _ := openHow(c)
	return opentype == nfs4.OPEN4_CREATE
}

// compound follows the current and the saved file handle through a COMPOUND.
func (s *safety) compound(o *plan.Op, w *world) string {
	current, saved := false, false // inside
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		switch op := nfs4.NfsOpnum4(c.Op); {
		case op == nfs4.OP_PUTFH:
			current = false
			for k := range c.Args {
				if a := &c.Args[k]; a.Kind == plan.FieldHandle {
					current = s.field(a, w) == ""
				}
			}
		case op == nfs4.OP_PUTROOTFH:
			current = w.root != nil && bytes.Equal(w.root, w.base) // it goes out as a PUTFH of the base
		case op == nfs4.OP_PUTPUBFH, op == nfs4.OP_LOOKUPP:
			current = false
		case op == nfs4.OP_LOOKUP:
			for k := range c.Args {
				a := &c.Args[k]
				if a.Kind == plan.FieldName && (plainName(a.Opaque()) != "" || !current && (a.Ref == 0 || !s.inside[a.Ref])) {
					current = false
				} else if a.Kind == plan.FieldName && a.Ref > 0 && s.inside[a.Ref] {
					current = true
				}
			}
		case op == nfs4.OP_SAVEFH:
			saved = current
		case op == nfs4.OP_RESTOREFH:
			current = saved
		case changing4[op], op == nfs4.OP_OPEN && creates(c):
			if !current {
				return fmt.Sprintf("%s would change something that is not known to be below the base", nfs4.OpName(c.Op))
			}
			if (op == nfs4.OP_RENAME || op == nfs4.OP_LINK || op == nfs4.OP_CLONE || op == nfs4.OP_COPY) && !saved {
				return fmt.Sprintf("the first file of %s is not known to be below the base", nfs4.OpName(c.Op))
			}
			for k := range c.Args {
				if a := &c.Args[k]; a.Kind == plan.FieldName {
					if why := plainName(a.Opaque()); why != "" {
						return why
					}
				}
			}
		}
	}
	return ""
}

// CleanDirectory checks the path of a directory on the target.
func CleanDirectory(p string) (string, error) {
	switch {
	case p == "":
		return "", fmt.Errorf("no directory on the target is given")
	case !strings.HasPrefix(p, "/"):
		return "", fmt.Errorf("the directory %q does not begin with /", p)
	case strings.ContainsRune(p, 0):
		return "", fmt.Errorf("the directory %q has a NUL", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return "", fmt.Errorf("the directory %q has .. in it", p)
		}
	}
	return path.Clean(p), nil
}

// components are the names of a clean path.
func components(p string) []string {
	var out []string
	for part := range strings.SplitSeq(p, "/") {
		if part != "" {
			out = append(out, part)
		}
	}
	return out
}
