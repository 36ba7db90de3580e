package memory

import (
	"slices"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// at finds the place of a block in the file's extents, and whether it is there.
func (n *inode) at(index uint64) (int, bool) {
	if index < uint64(len(n.extents)) && n.extents[index].index == index {
		return int(index), true // no hole before it
	}
	if len(n.extents) == 0 || n.extents[len(n.extents)-1].index < index {
		return len(n.extents), false
	}
	return slices.BinarySearchFunc(n.extents, index, func(e extent, i uint64) int {
		switch {
		case e.index < i:
			return -1
		case e.index > i:
			return 1
		}
		return 0
	})
}

// block is the block of that index, or nil.
func (n *inode) block(index uint64) *block {
	if i, ok := n.at(index); ok {
		return n.extents[i].block
	}
	return nil
}

// put makes b, which may be nil, the block of an index, and gives up what was
// there. The caller has charged the extentCost of an index that had no block.
func (s *space) put(n *inode, index uint64, b *block) {
	i, ok := n.at(index)
	switch {
	case ok && n.extents[i].block == b:
	case ok && b == nil:
		s.drop(n.extents[i].block)
		s.refund(extentCost)
		n.extents = slices.Delete(n.extents, i, i+1)
	case ok:
		s.drop(n.extents[i].block)
		n.extents[i].block = b
	case b != nil:
		n.extents = slices.Insert(n.extents, i, extent{index, b})
	}
}

// own makes the block of an index one that may be changed in [from, to), with
// memory up to there. The bytes stay as they are, those of [from, to) only if
// keep is set: otherwise the caller overwrites them. Nil if there is no space,
// unless force is set: taking bytes away must not fail for want of space.
func (s *space) own(n *inode, index uint64, from, to int, keep, force bool) *block {
	old := n.block(index)
	if old != nil && len(old.data) >= to && old.refs.Load() == 1 {
		return old
	}
	size := to
	if old != nil {
		size = max(size, len(old.data))
	}
	b := s.newBlock(size, force)
	if b == nil {
		return nil
	}
	if old == nil && !s.take(extentCost, force) {
		s.drop(b)
		return nil
	}
	have := 0
	if old != nil {
		b.pages = old.pages
		have = len(old.data)
	}
	if keep {
		from, to = 0, 0
	}
	// Outside of [from, to): the old bytes, zeros after them.
	fill := func(a, z int) {
		done := a
		if a < have {
			done += copy(b.data[a:z], old.data[a:])
		}
		clear(b.data[done:z])
	}
	if from > 0 {
		fill(0, from)
	}
	if to < len(b.data) {
		fill(to, len(b.data))
	}
	s.put(n, index, b)
	return b
}

// missing returns what own takes, in bytes.
func (n *inode) missing(index uint64, to int) int {
	old := n.block(index)
	switch {
	case old == nil:
		return extentCost + classSize(class(to))
	case old.refs.Load() > 1:
		return classSize(class(max(to, len(old.data))))
	case len(old.data) < to:
		return classSize(class(to)) - len(old.data)
	}
	return 0
}

// ownAll is own for a range. It takes all the memory or none, and changes nothing that can be seen: holes become zeros.
func (s *space) ownAll(n *inode, offset, length uint64) bool {
	total := 0
	spans(offset, length, func(index uint64, _, to int) bool {
		total += n.missing(index, to)
		return true
	})
	if !s.charge(total) {
		return false
	}
	spans(offset, length, func(index uint64, from, to int) bool {
		// Less than before, if a reader has given the block back meanwhile.
		part := n.missing(index, to)
		s.refund(part)
		total -= part
		s.own(n, index, from, to, true, true)
		return true
	})
	s.refund(total)
	return true
}

// spans calls f for each block of [offset, offset+length), with the part of it
// that the range covers. It stops when f says so.
func spans(offset, length uint64, f func(index uint64, from, to int) bool) {
	for end := offset + length; offset < end; {
		from := int(offset % BlockSize)
		to := int(min(uint64(BlockSize), uint64(from)+end-offset))
		if !f(offset>>blockShift, from, to) {
			return
		}
		offset += uint64(to - from)
	}
}

// Read reads; see the package's comment on the memory.
func (s *Store) Read(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error {
	n, err := s.findFile(h)
	if err != nil {
		return err
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.gone {
		return store.ErrStale
	}
	if !s.rules.PermitsData(c, &n.attr, store.MayRead) {
		return store.ErrAccess
	}
	r.Attr = n.attr
	size := n.attr.Size
	if offset >= size {
		r.Data, r.EOF = nil, true
		r.Keep(nil, nil)
		return nil
	}
	length := min(uint64(count), size-offset)
	r.EOF = offset+length == size
	from := int(offset % BlockSize)
	if uint64(from)+length > BlockSize {
		r.Data = s.gather(n, offset, length, r)
		return nil
	}
	b, to := n.block(offset>>blockShift), from+int(length)
	switch {
	case b == nil || from >= len(b.data):
		r.Data = zeros[:length:length]
		r.Keep(nil, nil)
	case to <= len(b.data):
		b.refs.Add(1)
		r.Data = b.data[from:to:to]
		r.Keep(s, b)
	default:
		r.Data = s.gather(n, offset, length, r)
	}
	return nil
}

// gather copies a range into memory of its own.
func (s *Store) gather(n *inode, offset, length uint64, r *store.ReadResult) []byte {
	var data []byte
	if length <= BlockSize {
		b := s.space.blocks.get(class(int(length)))
		b.scratch = true
		data = b.data[:length:length]
		r.Keep(s, b)
	} else {
		data = make([]byte, length)
		r.Keep(nil, nil)
	}
	n.copyOut(data, offset)
	return data
}

// copyOut fills dst with the bytes at offset; those beyond the file's blocks
// are zero.
func (n *inode) copyOut(dst []byte, offset uint64) {
	spans(offset, uint64(len(dst)), func(index uint64, from, to int) bool {
		part := dst[:to-from]
		dst = dst[to-from:]
		done := 0
		if b := n.block(index); b != nil && from < len(b.data) {
			done = copy(part, b.data[from:])
		}
		clear(part[done:])
		return true
	})
}

// ReleaseRead takes back what Read has handed out.
func (s *Store) ReleaseRead(token any) { s.space.drop(token.(*block)) }

// Write writes. All of it is as stable as memory is.
func (s *Store) Write(c *store.Cred, h store.Handle, offset uint64, data []byte, _ bool, w *store.Wcc) error {
	n, err := locked(s.findFile(h))
	if err != nil {
		return err
	}
	defer n.mu.Unlock()
	if !s.rules.PermitsData(c, &n.attr, store.MayWrite) {
		return store.ErrAccess
	}
	w.Before, w.Atomic = n.attr, true
	if err := s.rules.Fits(offset, uint64(len(data))); err != nil {
		return err
	}
	if len(data) > 0 {
		if err := s.space.write(n, offset, data); err != nil {
			return err
		}
		s.written(c, n)
	}
	w.After = n.attr
	return nil
}

// written notes that c has changed the data.
func (s *Store) written(c *store.Cred, n *inode) {
	if c.UID != 0 {
		n.attr.Mode = store.WithoutSetID(n.attr.Mode)
	}
	s.touch(n, true)
}

func (s *space) write(n *inode, offset uint64, data []byte) error {
	end := offset + uint64(len(data))
	if first, last := offset>>blockShift, (end-1)>>blockShift; first == last {
		from := int(offset % BlockSize)
		b := s.own(n, first, from, from+len(data), false, false)
		if b == nil {
			return store.ErrNoSpace
		}
		n.fill(b, from, data)
	} else {
		// All memory first, so that nothing is written if there is not enough.
		if !s.ownAll(n, offset, uint64(len(data))) {
			return store.ErrNoSpace
		}
		spans(offset, uint64(len(data)), func(index uint64, from, to int) bool {
			n.fill(n.block(index), from, data[:to-from])
			data = data[to-from:]
			return true
		})
	}
	n.attr.Size = max(n.attr.Size, end)
	return nil
}

// fill copies data into a block that the file owns.
func (n *inode) fill(b *block, from int, data []byte) {
	before := b.used()
	copy(b.data[from:], data)
	b.mark(from, from+len(data))
	n.attr.Used += uint64(b.used() - before)
}

// Commit has nothing to do.
func (s *Store) Commit(_ *store.Cred, h store.Handle, _, _ uint64, w *store.Wcc) error {
	n, err := s.findFile(h)
	if err != nil {
		return err
	}
	n.mu.RLock()
	w.Before, w.After, w.Atomic = n.attr, n.attr, true
	n.mu.RUnlock()
	return nil
}

// resize sets the size; what is beyond it is given up.
func (s *space) resize(n *inode, size uint64) {
	if size < n.attr.Size {
		// Beyond the size all is zero, so that a file that grows has a hole.
		s.punch(n, size, n.attr.Size-size)
	}
	n.attr.Size = size
}
