package memory

import (
	"slices"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Seek finds the next hole or data.
func (s *Store) Seek(c *store.Cred, h store.Handle, offset uint64, what store.Whence) (uint64, error) {
	n, err := s.findFile(h)
	if err != nil {
		return 0, err
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	size := n.attr.Size
	switch {
	case n.gone:
		return 0, store.ErrStale
	case !s.rules.PermitsData(c, &n.attr, store.MayRead):
		return 0, store.ErrAccess
	case offset >= size:
		return 0, store.ErrNXIO
	}
	found := n.next(offset, what == store.SeekData)
	if found >= size {
		if what == store.SeekData {
			return 0, store.ErrNXIO
		}
		return size, nil // the end is a hole
	}
	return found, nil
}

// next is the first place at or after offset that has data, or has none; beyond
// the file if there is none.
func (n *inode) next(offset uint64, data bool) uint64 {
	const none = ^uint64(0)
	i, _ := n.at(offset >> blockShift)
	for place := offset; ; i++ {
		if i == len(n.extents) {
			if data {
				return none
			}
			return place
		}
		e := &n.extents[i]
		start := e.index << blockShift
		if start > place {
			if !data {
				return place
			}
			place = start
		}
		page := int(place-start) >> pageShift
		if p := e.block.next(page, data); p < pagesPerBlock {
			return max(start+uint64(p)<<pageShift, place)
		}
		place = start + BlockSize
	}
}

// lockRange locks a file of which a range is to be reserved or given up.
func (s *Store) lockRange(c *store.Cred, h store.Handle, offset, length uint64) (*inode, error) {
	n, err := locked(s.findFile(h))
	if err != nil {
		return nil, err
	}
	switch {
	case !s.rules.PermitsData(c, &n.attr, store.MayWrite):
		err = store.ErrAccess
	case length == 0:
		err = store.ErrInval
	default:
		err = s.rules.Fits(offset, length)
	}
	if err != nil {
		n.mu.Unlock()
		return nil, err
	}
	return n, nil
}

// Allocate reserves memory.
func (s *Store) Allocate(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
	n, err := s.lockRange(c, h, offset, length)
	if err != nil {
		return err
	}
	defer n.mu.Unlock()
	if length > s.opt.Size {
		return store.ErrNoSpace
	}
	w.Before, w.Atomic = n.attr, true
	if !s.space.ownAll(n, offset, length) {
		return store.ErrNoSpace
	}
	spans(offset, length, func(index uint64, from, to int) bool {
		b := n.block(index)
		before := b.used()
		b.mark(from, to)
		n.attr.Used += uint64(b.used() - before)
		return true
	})
	n.attr.Size = max(n.attr.Size, offset+length)
	s.written(c, n)
	w.After = n.attr
	return nil
}

// Deallocate makes a hole.
func (s *Store) Deallocate(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
	n, err := s.lockRange(c, h, offset, length)
	if err != nil {
		return err
	}
	defer n.mu.Unlock()
	w.Before, w.Atomic = n.attr, true
	s.space.punch(n, offset, length)
	s.written(c, n)
	w.After = n.attr
	return nil
}

// punch makes a range zero and gives up the memory of whole blocks in it.
func (s *space) punch(n *inode, offset, length uint64) {
	end := offset + length
	first, last := offset>>blockShift, end>>blockShift
	if first == last {
		s.punchBlock(n, first, int(offset%BlockSize), int(end%BlockSize))
		return
	}
	if from := int(offset % BlockSize); from > 0 {
		s.punchBlock(n, first, from, BlockSize)
		first++
	}
	if to := int(end % BlockSize); to > 0 {
		s.punchBlock(n, last, 0, to)
	}
	i, _ := n.at(first)
	j, _ := n.at(last)
	for k := i; k < j; k++ {
		n.attr.Used -= uint64(n.extents[k].block.used())
		s.drop(n.extents[k].block)
	}
	s.refund((j - i) * extentCost)
	n.extents = slices.Delete(n.extents, i, j)
}

// punchBlock is punch within a block.
func (s *space) punchBlock(n *inode, index uint64, from, to int) {
	b := n.block(index)
	if b == nil || from >= min(to, len(b.data)) {
		return
	}
	before := b.used()
	defer func() { n.attr.Used -= uint64(before) }()
	// Pages that are left: those that the range does not cover.
	if left := b.pages; true {
		probe := block{pages: left}
		probe.unmark(from, to)
		if from == 0 && to >= len(b.data) || probe.used() == 0 {
			s.put(n, index, nil)
			return
		}
	}
	b = s.own(n, index, from, min(to, len(b.data)), false, true)
	clear(b.data[from:min(to, len(b.data))])
	b.unmark(from, to)
	n.attr.Used += uint64(b.used())
}
