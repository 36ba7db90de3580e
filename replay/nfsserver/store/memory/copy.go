package memory

import (
	"slices"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// maxCopy is how many bytes one Copy copies, so that it does not hold up the
// caller for long.
const maxCopy = 64 << 20

// pair finds the files of Copy and Clone.
func (s *Store) pair(src, dst store.Handle) (from, to *inode, err error) {
	if from, err = s.findFile(src); err != nil {
		return nil, nil, err
	}
	to, err = s.findFile(dst)
	return from, to, err
}

// lockPair locks two files for a copy, always in the same order.
func lockPair(from, to *inode) (unlock func()) {
	switch {
	case from == to:
		to.mu.Lock()
		return to.mu.Unlock
	case from.attr.Handle.ID < to.attr.Handle.ID:
		from.mu.RLock()
		to.mu.Lock()
	default:
		to.mu.Lock()
		from.mu.RLock()
	}
	return func() {
		from.mu.RUnlock()
		to.mu.Unlock()
	}
}

// checkPair checks permissions and ranges; both are locked. It returns the
// length that there is to copy.
func (s *Store) checkPair(c *store.Cred, from, to *inode, srcOffset, dstOffset, length uint64) (uint64, error) {
	switch {
	case from.gone || to.gone:
		return 0, store.ErrStale
	case !s.rules.PermitsData(c, &from.attr, store.MayRead) || !s.rules.PermitsData(c, &to.attr, store.MayWrite):
		return 0, store.ErrAccess
	}
	return s.rules.CopyLength(from.attr.Size, srcOffset, dstOffset, length, from == to)
}

// Copy copies, at most maxCopy bytes, and of whole blocks only the reference.
func (s *Store) Copy(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) (uint64, error) {
	from, to, err := s.pair(src, dst)
	if err != nil {
		return 0, err
	}
	defer lockPair(from, to)()
	length, err = s.checkPair(c, from, to, srcOffset, dstOffset, length)
	if err != nil {
		return 0, err
	}
	w.Before, w.Atomic = to.attr, true
	length = min(length, maxCopy)
	done := uint64(0)
	for done < length && err == nil {
		at := srcOffset + done
		n := min(length-done, BlockSize-at%BlockSize)
		if at%BlockSize == 0 && n == BlockSize && (dstOffset+done)%BlockSize == 0 {
			if err = s.space.share(from, at>>blockShift, to, (dstOffset+done)>>blockShift); err == nil {
				to.attr.Size = max(to.attr.Size, dstOffset+done+n)
			}
		} else {
			err = s.space.copyPart(from, at, to, dstOffset+done, n)
		}
		if err == nil {
			done += n
		}
	}
	if done == 0 && err != nil {
		return 0, err
	}
	if done > 0 {
		s.written(c, to)
	}
	w.After = to.attr
	return done, nil
}

// copyPart copies n bytes of one block. A hole stays one.
func (s *space) copyPart(from *inode, at uint64, to *inode, place, n uint64) error {
	b, start := from.block(at>>blockShift), int(at%BlockSize)
	if b == nil || start >= len(b.data) {
		s.punch(to, place, n)
		to.attr.Size = max(to.attr.Size, place+n)
		return nil
	}
	// The block may be the one that is written to: hold it, so that it is not.
	b.refs.Add(1)
	defer s.drop(b)
	have := min(uint64(len(b.data)-start), n)
	if err := s.write(to, place, b.data[start:start+int(have)]); err != nil {
		return err
	}
	if have < n {
		s.punch(to, place+have, n-have)
		to.attr.Size = max(to.attr.Size, place+n)
	}
	return nil
}

// share makes a block of one file a block of another.
func (s *space) share(from *inode, index uint64, to *inode, place uint64) error {
	b := from.block(index)
	used := uint64(0)
	if old := to.block(place); old != nil {
		used = uint64(old.used())
	} else if b != nil && !s.charge(extentCost) {
		return store.ErrNoSpace
	}
	if b != nil {
		b.refs.Add(1)
		to.attr.Used += uint64(b.used())
	}
	s.put(to, place, b)
	to.attr.Used -= used
	return nil
}

// Clone makes files share blocks.
func (s *Store) Clone(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) error {
	from, to, err := s.pair(src, dst)
	if err != nil {
		return err
	}
	defer lockPair(from, to)()
	asked := length
	length, err = s.checkPair(c, from, to, srcOffset, dstOffset, length)
	if err != nil {
		return err
	}
	if err := s.rules.CheckClone(from.attr.Size, srcOffset, dstOffset, asked); err != nil {
		return err
	}
	w.Before, w.Atomic = to.attr, true
	whole, rest := length/BlockSize, length%BlockSize
	first := srcOffset >> blockShift
	i, _ := from.at(first)
	j, _ := from.at(first + whole)
	// A clone takes no memory for data, but its list of blocks does.
	if !s.space.charge((j - i) * extentCost) {
		return store.ErrNoSpace
	}
	shared := slices.Clone(from.extents[i:j])
	if rest > 0 {
		// The last part of a file that ends within a block. Copied first, since
		// this can fail.
		if err := s.space.copyPart(from, srcOffset+whole*BlockSize, to, dstOffset+whole*BlockSize, rest); err != nil {
			s.space.refund(len(shared) * extentCost)
			return err
		}
	}
	// Blocks of the target that the source does not have become holes.
	if whole > 0 {
		s.space.punch(to, dstOffset, whole*BlockSize)
	}
	for k := range shared {
		e := &shared[k]
		e.index += dstOffset>>blockShift - first
		e.block.refs.Add(1)
		to.attr.Used += uint64(e.block.used())
	}
	i, _ = to.at(dstOffset >> blockShift)
	to.extents = slices.Insert(to.extents, i, shared...)
	if length > 0 {
		to.attr.Size = max(to.attr.Size, dstOffset+length)
		s.written(c, to)
	}
	w.After = to.attr
	return nil
}
