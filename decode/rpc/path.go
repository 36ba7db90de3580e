package rpc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sync/atomic"

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
	if f := n.Place(handle); f != nil {
		return append(dst, f.Path...)
	}
	if x := n.leafOf(handle); x != nil {
		dst = n.appendPath(dst, x, 0)
	}
	return dst
}

// appendPath appends the path of a leaf that is so many levels above the file.
func (n *Names) appendPath(dst []byte, x *leaf, level int) []byte {
	if level < maxDepth {
		if up := n.leafOf(x.dir.handle); up != nil {
			dst = append(n.appendPath(dst, up, level+1), '/')
		}
	}
	return append(dst, x.name()...)
}

const (
	// Places is how many Places there are at a time; a power of 2.
	Places     = 256
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
	words  [4]uint64 // the first and the last 16 bytes of the handle, if it has as many
	size   int       // of the handle; -1 if it is to be looked for again
	sum    uint64    // of the handle
	epoch  uint32
	depth  uint8 // directories above it that have a name
	known  bool  // it has a name
	handle []byte
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

// sumOf is a checksum of a file handle. Most have 16 to 32 bytes: their first and last 16 are all of them.
func sumOf(h []byte) uint64 {
	if len(h)-16 > 16 || len(h) < 16 {
		return wire.Sum64(0, h)
	}
	last := h[len(h)-16:]
	return sum32(binary.LittleEndian.Uint64(h), binary.LittleEndian.Uint64(h[8:]), binary.LittleEndian.Uint64(last), binary.LittleEndian.Uint64(last[8:]), len(h))
}

func sum32(a, b, c, d uint64, n int) uint64 {
	const m1, m2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	hi, lo := bits.Mul64(a^m1, b^m2)
	hi, lo = bits.Mul64(c^hi^lo^m2, d^uint64(n)<<56^m1)
	return hi ^ lo
}

// Place returns the place of a file; nil without Names, or if its path or the handle are long. Whoever wants more than the path
// of a file needs one search for it. What it compares are numbers: nearly all transactions ask for a file that was asked for lately.
func (n *Names) Place(handle []byte) *Place {
	size := len(handle)
	if n == nil || size > maxHandle {
		return nil
	}
	r := &n.recent
	var sum uint64
	if size >= 16 && size <= 32 {
		first, last := (*[16]byte)(handle), (*[16]byte)(handle[size-16:])
		a, b := binary.LittleEndian.Uint64(first[:8]), binary.LittleEndian.Uint64(first[8:])
		c, d := binary.LittleEndian.Uint64(last[:8]), binary.LittleEndian.Uint64(last[8:])
		sum = sum32(a, b, c, d, size)
		f := &r.files[sum%Places]
		// That the sum is the same would be no proof: somebody may make two handles that have the same.
		if w := &f.words; (w[0]^a)|(w[1]^b)|(w[2]^c)|(w[3]^d) == 0 && f.size == size && f.epoch == r.epoch {
			return &f.Place
		}
	} else {
		sum = sumOf(handle)
	}
	if f := r.look(n, sum, handle, 0); f != nil {
		return &f.Place
	}
	return nil
}

// find returns a file if it is there.
func (r *recent) find(sum uint64, handle []byte) *recentFile {
	f := &r.files[sum%Places]
	if f.sum != sum || f.epoch != r.epoch || f.size < 0 || f.Stamp == 0 || !bytes.Equal(f.handle, handle) {
		return nil
	}
	return f
}

// look returns a file, whose handle has that sum, with its path; nil if the path is long. The file is so many levels above the one that
// was asked for.
func (r *recent) look(n *Names, sum uint64, handle []byte, level int) *recentFile {
	if f := r.find(sum, handle); f != nil {
		return f
	}
	x := n.leafOf(handle)
	f := &r.files[sum%Places]
	switch {
	case x == nil:
		f.Path, f.depth = f.Path[:0], 0
	case level == maxDepth:
		return nil
	default:
		up := r.look(n, sumOf(x.dir.handle), x.dir.handle, level+1) // may take the place of f
		if up == nil || up.depth == maxDepth || len(up.Path)+1+len(x.name()) > recentPath {
			return nil
		}
		r.above.add(up.sum)
		f.depth = up.depth
		if f != up {
			f.Path = append(f.Path[:0], up.Path...)
		}
		if up.known {
			f.depth++
			f.Path = append(f.Path, '/')
		}
		f.Path = append(f.Path, x.name()...)
	}
	f.sum, f.epoch, f.known, f.handle = sum, r.epoch, x != nil, append(f.handle[:0], handle...)
	f.words, f.size = [4]uint64{}, len(handle)
	if len(handle) >= 16 {
		last := handle[len(handle)-16:]
		f.words[0], f.words[1] = binary.LittleEndian.Uint64(handle), binary.LittleEndian.Uint64(handle[8:])
		f.words[2], f.words[3] = binary.LittleEndian.Uint64(last), binary.LittleEndian.Uint64(last[8:])
	}
	f.Stamp, f.Slot = r.stamped(), int(sum%Places)
	return f
}

// renamed forgets a file that has another name now, and all files if it may be a directory above one of them.
func (r *recent) renamed(handle []byte) {
	if r.stamp != 0 { // somebody has asked for one
		r.drop(handle)
	}
}

// drop is renamed if there may be something to forget.
func (r *recent) drop(handle []byte) {
	sum := sumOf(handle)
	if f := &r.files[sum%Places]; f.sum == sum {
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
