package memory

import "sync/atomic"

// space is the memory of a Store, in blocks of files or counted in bytes.
type space struct {
	limit  int64
	used   atomic.Int64
	blocks blockPool
}

// charge counts n bytes as used, if that many are free.
func (s *space) charge(n int) bool {
	if s.used.Add(int64(n)) > s.limit && n > 0 {
		s.used.Add(-int64(n))
		return false
	}
	return true
}

// take is charge, which force lets exceed the limit.
func (s *space) take(n int, force bool) bool {
	if force {
		s.used.Add(int64(n))
		return true
	}
	return s.charge(n)
}

func (s *space) refund(n int) { s.used.Add(-int64(n)) }

// newBlock makes a block for n bytes with one reference. Its data may hold
// anything. Nil if there is no space, unless force is set.
func (s *space) newBlock(n int, force bool) *block {
	c := class(n)
	if !s.take(classSize(c), force) {
		return nil
	}
	b := s.blocks.get(c)
	b.scratch = false
	return b
}

// drop gives up a reference.
func (s *space) drop(b *block) {
	if b.refs.Add(-1) != 0 {
		return
	}
	if !b.scratch {
		s.refund(len(b.data))
	}
	s.blocks[b.class].Put(b)
}
