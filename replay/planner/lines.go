package planner

import (
	"cmp"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// all visits the line of each object. The table is made as it is written: it would
// take as much memory as what is known of the objects.
func (s *space) all() iter.Seq[*plan.Object] {
	return func(yield func(*plan.Object) bool) {
		for i, o := range s.byID {
			x := s.object(o.real(), i+1)
			x.Path = strings.ToValidUTF8(o.real().pathFromBase(), "?")
			if !yield(&x) {
				return
			}
		}
	}
}

// maxTarget is the length of the longest target of a symbolic link that servers take (PATH_MAX, without the zero
// byte). One that is made up has the captured length, since that is the size of the link.
const maxTarget = 4095

func (s *space) object(o *obj, id int) plan.Object {
	x := plan.Object{
		ID: id, Server: o.server, Type: o.typ, Origin: o.origin, Base: o.isBase, NameClass: o.nameClass,
		Handle: hex.EncodeToString([]byte(o.handle)), Notes: o.notes, CreatedBy: o.created.Op,
	}
	if x.Type == "" {
		x.Type = o.guess()
	}
	x.Name, x.NameBytes = text(o.name)
	if o.parent != nil {
		x.Parent = s.ref(o.parent)
	}
	for _, l := range o.links {
		y := plan.Link{Parent: s.ref(l.dir)}
		y.Name, y.NameBytes = text(l.name)
		x.Links = append(x.Links, y)
	}
	if o.origin != plan.Before {
		return x
	}
	x.Mode, x.UID, x.GID, x.Owner, x.Group = o.mode, o.uid, o.gid, o.owner, o.group
	if o.target == "" && x.Type == "symlink" {
		x.Target = strings.Repeat("x", int(min(max(o.size, 1), maxTarget)))
		x.Notes = append(slices.Clone(x.Notes), plan.Note{Kind: plan.NoteNoTarget})
	} else {
		x.Target, x.TargetBytes = text(o.target)
	}
	x.ACL = o.acl
	if n := uint32(1 + len(x.Links)); x.Type != "dir" && o.nlink > 0 && o.nlink != n {
		x.Nlink = o.nlink
	}
	switch x.Type {
	case "block", "char":
		x.Major, x.Minor = o.major, o.minor
	case "file":
		x.Size, x.SizeClass = o.size, o.sizeClass
		if x.SizeClass == "" {
			// No reply told the size before the file was changed. The file reached at least to the end of what was read since and nobody had written.
			x.Size, x.SizeClass = o.readEnd, plan.Inferred
			for _, e := range o.content {
				x.Size = max(x.Size, e.Offset+e.Length)
			}
		}
		x.Content = o.within(x.Size)
	}
	return x
}

// guess is the type of an object that was never described.
func (o *obj) guess() string {
	switch {
	case o.target != "":
		return "symlink"
	case !o.dir.Empty():
		return "dir"
	}
	return "file"
}

// within is the known content up to the size, in order.
func (o *obj) within(size uint64) []plan.Extent {
	list := slices.Clone(o.content)
	slices.SortFunc(list, func(a, b plan.Extent) int { return cmp.Compare(a.Offset, b.Offset) })
	kept := list[:0]
	for _, e := range list {
		if e.Offset < size {
			e.Length = min(e.Length, size-e.Offset)
			kept = append(kept, e)
		}
	}
	return kept
}

// text is a name for JSON: as bytes if it is not UTF-8.
func text(name string) (string, []byte) {
	if utf8.ValidString(name) {
		return name, nil
	}
	return "", []byte(name)
}

// pathFromBase is the first path of an object.
func (o *obj) pathFromBase() string {
	var way [maxPath]string
	n, size := 0, 0
	for ; n < maxPath && size <= maxPathBytes; n++ {
		if o.parent == nil {
			if o.isBase && o.name != "" {
				way[n] = o.name
				n++
				if n == 1 {
					way[0] += "/"
				}
			}
			break
		}
		way[n] = o.name[:min(len(o.name), maxPathBytes)]
		size += len(way[n])
		o = o.parent.real()
	}
	slices.Reverse(way[:n])
	return strings.Join(way[:n], "/")
}

// maxPathBytes is roughly how long a path may be; of longer ones the end is kept.
const maxPathBytes = 4096
