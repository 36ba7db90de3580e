package rpc

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
)

// AppendPath appends what Path returns. It does not allocate.
func (v *View) AppendPath(dst []byte) []byte {
	f := v.File()
	if f == nil || v.Names == nil {
		return dst
	}
	start := len(dst)
	dst = v.Names.AppendPath(dst, f.Handle)
	if f.Name == nil {
		return dst
	}
	if len(dst) > start {
		dst = append(dst, '/')
	}
	return append(dst, f.Name...)
}

// AppendPath appends what Path returns. It does not allocate.
func (n *Names) AppendPath(dst, handle []byte) []byte {
	if f := n.recent.look(n, handle, 0); f != nil {
		return append(dst, f.path...)
	}
	if e, ok := n.byHandle[string(handle)]; ok {
		dst = n.appendPath(dst, &e, 0)
	}
	return dst
}

// appendPath appends the path of an entry that is so many levels above the file.
func (n *Names) appendPath(dst []byte, e *entry, level int) []byte {
	if level < maxDepth {
		if up, ok := n.byHandle[e.parent]; ok {
			dst = append(n.appendPath(dst, &up, level+1), '/')
		}
	}
	return append(dst, e.name...)
}

const (
	recentFiles = 256 // power of 2
	recentPath  = 512 // bytes of a path that is kept
)

// recent keeps the paths of the files asked for lately. To find one takes one comparison, instead of a search in the
// tables of Names for the file and for each directory above it.
type recent struct {
	files [recentFiles]recentFile
	epoch uint32 // changes when all are forgotten
	above marks  // has the directories that paths depend on
}

// recentFile is a file with its path.
type recentFile struct {
	sum    uint64 // of the handle
	epoch  uint32
	depth  uint8 // directories above it that have a name
	known  bool  // it has a name
	entry        // its name
	handle []byte
	path   []byte
}

// find returns a file if it is there.
func (r *recent) find(sum uint64, handle []byte) *recentFile {
	f := &r.files[sum%recentFiles]
	if f.sum != sum || f.epoch != r.epoch || !bytes.Equal(f.handle, handle) {
		return nil
	}
	return f
}

// look returns a file with its path; nil if the path is long. The file is so many levels above the one that was asked for.
func (r *recent) look(n *Names, handle []byte, level int) *recentFile {
	sum := wire.Sum64(0, handle)
	if f := r.find(sum, handle); f != nil {
		return f
	}
	e, known := n.byHandle[string(handle)]
	f := &r.files[sum%recentFiles]
	switch {
	case !known:
		f.path, f.depth = f.path[:0], 0
	case level == maxDepth:
		return nil
	default:
		up := r.look(n, []byte(e.parent), level+1) // may take the place of f
		if up == nil || up.depth == maxDepth || len(up.path)+1+len(e.name) > recentPath {
			return nil
		}
		r.above.add(up.sum)
		f.depth = up.depth
		if f != up {
			f.path = append(f.path[:0], up.path...)
		}
		if up.known {
			f.depth++
			f.path = append(f.path, '/')
		}
		f.path = append(f.path, e.name...)
	}
	f.sum, f.epoch, f.known, f.entry, f.handle = sum, r.epoch, known, e, append(f.handle[:0], handle...)
	return f
}

// renamed forgets a file that has another name now, and all files if it may be a directory above one of them.
func (r *recent) renamed(handle string) {
	sum := wire.Sum64(0, []byte(handle))
	if f := &r.files[sum%recentFiles]; f.sum == sum {
		f.sum = 0
	}
	if r.above.has(sum) {
		r.forget()
	}
}

// forget forgets all files.
func (r *recent) forget() {
	r.epoch++
	r.above = marks{}
}

// marks is a set of checksums. It may seem to have some that were not added.
type marks [16]uint64

func (m *marks) add(sum uint64)      { m[sum>>60] |= 1 << (sum >> 54 & 63) }
func (m *marks) has(sum uint64) bool { return m[sum>>60]>>(sum>>54&63)&1 != 0 }
