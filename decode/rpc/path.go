package rpc

import (
	"bytes"
	"math/bits"
	"sync/atomic"
)

// AppendPath appends what Path returns. It does not allocate.
func (v *View) AppendPath(dst []byte) []byte {
	f := v.File()
	if f == nil || v.Names == nil || f.Unnamed {
		return dst
	}
	start := len(dst)
	dst = v.Names.Of(v.Tx).AppendPath(dst, f.Handle)
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
	if f := n.Place(handle); f != nil {
		return append(dst, f.Path...)
	}
	if x := n.entryOf(handle); x != nil {
		dst = n.appendPath(dst, x, 0)
	}
	return dst
}

// appendPath appends the path of an entry that is the given number of levels above the file.
func (n *Names) appendPath(dst []byte, x *entry, level int) []byte {
	if level < maxDepth {
		if up := n.entryOf(x.dir.handle); up != nil {
			dst = append(n.appendPath(dst, up, level+1), '/')
		}
	}
	return append(dst, x.name()...)
}

const (
	// Places is how many Places there are at a time; a power of 2.
	Places     = 1 << placeBits
	placeBits  = 8
	recentPath = 512 // bytes of a path that is kept
	maxHandle  = 256 // bytes of a handle that is kept
)

// Place is what is known of a file that was asked for lately. It is valid until Names learns more, or is asked for another.
type Place struct {
	// Path is what Names.Path returns.
	Path []byte
	// Stamp identifies the handle together with this path. It is never used again, in any Names. A consumer that keeps text made
	// of the two can keep it in an array of Places elements, at Slot, and compare stamps.
	Stamp uint64
	Slot  int
}

// recent keeps the paths of the files asked for lately. To find one takes one comparison, instead of a search in the
// tables of Names for the file and for each directory above it.
type recent struct {
	files [Places]recentFile
	epoch uint32 // changes when all are forgotten
	stamp uint64 // newest
	above marks  // has the directories that paths depend on
}

// recentFile is a file with its path.
type recentFile struct {
	words  words // of the handle, if it has 16 to 32 bytes
	size   int   // of the handle; -1 if it is to be looked for again
	server Server
	sum    uint64 // of the handle
	epoch  uint32
	depth  uint8  // directories above it that have a name
	known  bool   // it has a name
	handle []byte // if it has another size
	Place
}

// stampBlock is how many numbers a Names takes at a time: there is nothing else that all have in common.
const stampBlock = 1 << 20

var stampBlocks atomic.Uint64

// stamped returns a number that was never returned before.
func (r *recent) stamped() uint64 {
	if r.stamp%stampBlock == 0 {
		r.stamp = stampBlocks.Add(1) * stampBlock
	}
	r.stamp++
	return r.stamp
}

// Place returns the place of a file; nil without Names, or if its path or the handle are long. Whoever wants more than the path
// of a file needs one search for it. What it compares are numbers: nearly all transactions ask for a file that was asked for lately.
func (n *Names) Place(handle []byte) *Place {
	size := len(handle)
	if n == nil || size < 16 || size > 32 {
		return n.oddPlace(handle)
	}
	r := &n.recent
	w := wordsOf(handle)
	slot := w.slot(n.server)
	f := &r.files[slot]
	// That the slot is the same would be no proof: many handles have the same.
	if f.words.are(w) && f.size == size && f.epoch == r.epoch && f.server == n.server {
		return &f.Place
	}
	if f := r.look(n, slot, w.sum(n.server.key(), size), handle, 0); f != nil {
		return &f.Place
	}
	return nil
}

// slotOf is where a file is kept.
func slotOf(s Server, handle []byte) int {
	if n := len(handle); n >= 16 && n <= 32 {
		return wordsOf(handle).slot(s)
	}
	return int(keyedSum(s.key(), handle) % Places)
}

// slot takes each bit of a handle into account, and no more than that.
func (w words) slot(s Server) int {
	x := uint64(s) ^ w.a ^ bits.RotateLeft64(w.b, 19) ^ bits.RotateLeft64(w.c, 37) ^ bits.RotateLeft64(w.d, 53)
	return int(x * 0x9e3779b97f4a7c15 >> (64 - placeBits))
}

// oddPlace is Place for handles of other sizes than most.
func (n *Names) oddPlace(handle []byte) *Place {
	if n == nil || len(handle) > maxHandle {
		return nil
	}
	r, slot := &n.recent, slotOf(n.server, handle)
	f := r.find(n.server, slot, handle)
	if f == nil {
		f = r.look(n, slot, keyedSum(n.server.key(), handle), handle, 0)
	}
	if f == nil {
		return nil
	}
	return &f.Place
}

// find returns a file if it is there, in its slot.
func (r *recent) find(s Server, slot int, handle []byte) *recentFile {
	f, size := &r.files[slot], len(handle)
	if f.epoch != r.epoch || f.size != size || f.Stamp == 0 || f.server != s {
		return nil
	}
	if size >= 16 && size <= 32 {
		if f.words.are(wordsOf(handle)) {
			return f
		}
	} else if bytes.Equal(f.handle, handle) {
		return f
	}
	return nil
}

// look looks for a file that is not there, whose handle has that slot and sum, with its path; nil if the path is long. The file is level
// levels above the one that was asked for.
func (r *recent) look(n *Names, slot int, sum uint64, handle []byte, level int) *recentFile {
	f := &r.files[slot]
	i := n.known.at(sum, handle)
	switch {
	case i == 0:
		f.Path, f.depth, f.known = f.Path[:0], 0, false
	case level == maxDepth:
		return nil
	default:
		x := &n.known.entries[i]
		dir, name := x.dir, x.name()
		above := slotOf(n.server, dir.handle)
		up := r.find(n.server, above, dir.handle)
		if up == nil {
			up = r.look(n, above, dir.sum, dir.handle, level+1) // may take the place of f
		}
		if up == nil || up.depth == maxDepth || len(up.Path)+1+len(name) > recentPath {
			return nil
		}
		r.above.add(up.sum)
		path, depth := up.Path, up.depth
		if f != up {
			path = append(f.Path[:0], path...)
		}
		if up.known {
			depth++
			path = append(path, '/')
		}
		f.Path, f.depth, f.known = append(path, name...), depth, true
	}
	f.sum, f.epoch, f.server = sum, r.epoch, n.server
	if f.size = len(handle); f.size >= 16 && f.size <= 32 {
		f.words = wordsOf(handle)
	} else {
		f.words, f.handle = words{}, append(f.handle[:0], handle...)
	}
	f.Stamp, f.Slot = r.stamped(), slot
	return f
}

// renamed forgets a file that has another name now, and all files if it may be a directory above one of them. It gets the sum of the handle.
func (r *recent) renamed(s Server, handle []byte, sum uint64) {
	if f := &r.files[slotOf(s, handle)]; f.sum == sum {
		f.size = -1
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
