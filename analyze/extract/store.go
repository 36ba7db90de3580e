package extract

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// regionSize is the unit in which the bytes of a file find their place in its
// temporary file.
const regionSize = 64 << 10

// maxRegions bounds those of all files that have to be remembered, maxPieces
// the ranges: some 48 MiB together.
const (
	maxRegions = 1 << 19
	maxPieces  = 1 << 20
)

// maxOpen is how many temporary files are open at once.
const maxOpen = 64

// store holds the bytes of one file until its end is known. As long as they
// come from the beginning, the temporary file looks like the file. From the
// first one that is far ahead on, regions lie in it in the order in which they
// came: an offset is a claim, and must not make a long file.
type store struct {
	path   string   // below the root
	f      *os.File // nil while it is not open
	exists bool
	dense  uint64            // regions that lie where they belong
	far    map[uint64]uint64 // the others, and where they are
	data   spans             // what was written, once there are any
	length uint64            // of the file
	solid  uint64            // of the temporary file, while it looks like the file
	lost   bool              // there was no room for some
}

// write puts bytes at an offset. It returns false if there was no room for some
// of them.
func (x *Extractor) write(s *store, offset uint64, b []byte) (bool, error) {
	f, err := x.openStore(s)
	if err != nil {
		return false, err
	}
	for len(b) > 0 {
		n := min(uint64(len(b)), regionSize-offset%regionSize)
		at, ok := x.slot(s, offset/regionSize)
		if !ok {
			s.lost = true
			return false, nil
		}
		if _, err := f.WriteAt(b[:n], int64(at*regionSize+offset%regionSize)); err != nil {
			return false, err
		}
		if s.sorted() {
			s.solid = max(s.solid, offset+n)
		} else {
			x.pieces += s.data.add(offset, offset+n)
		}
		offset += n
		b = b[n:]
		s.length = max(s.length, offset)
	}
	return true, nil
}

// slot is the place of a region, which is made if need be.
func (x *Extractor) slot(s *store, region uint64) (uint64, bool) {
	if region < s.dense {
		return region, true
	}
	if at, ok := s.far[region]; ok {
		return at, true
	}
	if s.far == nil && region == s.dense {
		s.dense++
		return region, true
	}
	if x.regions >= maxRegions {
		return 0, false
	}
	if s.far == nil {
		s.far = make(map[uint64]uint64)
		x.pieces += s.data.add(0, s.solid)
	}
	x.regions++
	at := s.dense + uint64(len(s.far))
	s.far[region] = at
	return at, true
}

// resize sets the length of a file.
func (x *Extractor) resize(s *store, size uint64) error {
	f, err := x.openStore(s)
	if err != nil {
		return err
	}
	s.length = size
	if !s.sorted() {
		x.pieces -= s.data.cut(size)
		return nil
	}
	if size < s.solid {
		s.solid = size
		s.dense = (size + regionSize - 1) / regionSize
		return f.Truncate(int64(size))
	}
	return nil
}

func (x *Extractor) openStore(s *store) (*os.File, error) {
	if s.f != nil {
		return s.f, nil
	}
	if err := x.closeStore(x.nextOpen); err != nil {
		return nil, err
	}
	f, err := x.root.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o666)
	// A process may be allowed fewer files.
	for i := 1; i < maxOpen && errors.Is(err, syscall.EMFILE); i++ {
		oldest := (x.nextOpen + i) % maxOpen
		if x.open[oldest] == nil {
			continue
		}
		if err := x.closeStore(oldest); err != nil {
			return nil, err
		}
		f, err = x.root.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o666)
	}
	if err != nil {
		return nil, err
	}
	s.f, s.exists = f, true
	x.open[x.nextOpen] = s
	x.nextOpen = (x.nextOpen + 1) % maxOpen
	return f, nil
}

// closeStore closes the file at a place of the list of those that are open.
func (x *Extractor) closeStore(i int) error {
	s := x.open[i]
	if s == nil {
		return nil
	}
	err := s.f.Close()
	s.f, x.open[i] = nil, nil
	return err
}

func (x *Extractor) closeStores() error {
	var err error
	for i := range x.open {
		err = errors.Join(err, x.closeStore(i))
	}
	return err
}

// written is what was put into the file, or lies between in a temporary file
// that looks like it.
func (s *store) written() *spans {
	if s.sorted() {
		return &spans{list: []span{{0, s.solid}}}
	}
	return &s.data
}

// settleStore makes the temporary file what the file will be: as long as it is,
// or packed, with the given parts alone, all of which were written.
func (x *Extractor) settleStore(s *store, parts *spans, packed bool) error {
	if s.sorted() && !packed {
		if s.length == s.solid {
			return nil
		}
		f, err := x.root.OpenFile(s.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(int64(s.length)), f.Close())
	}
	if !packed {
		parts = &s.data
	} else if s.sorted() && parts.bytes(s.solid) == s.solid {
		return nil // it has nothing else
	}
	in, err := x.root.Open(s.path)
	if err != nil {
		return err
	}
	out, err := x.root.OpenFile(s.path+".whole", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	at := int64(0)
	for _, r := range parts.merge() {
		for r.from < r.to && err == nil {
			n := min(r.to-r.from, regionSize-r.from%regionSize)
			slot := r.from / regionSize
			if slot >= s.dense {
				slot = s.far[slot]
			}
			if !packed {
				at = int64(r.from)
			}
			err = copyAt(out, at, in, int64(slot*regionSize+r.from%regionSize), int64(n), x.buf[:])
			at += int64(n)
			r.from += n
		}
	}
	if err == nil && !packed {
		err = out.Truncate(int64(s.length))
	}
	if err = errors.Join(err, in.Close(), out.Close()); err != nil {
		return errors.Join(err, x.root.Remove(s.path+".whole"))
	}
	return x.root.Rename(s.path+".whole", s.path)
}

func (s *store) sorted() bool { return s.far == nil }

func copyAt(out *os.File, to int64, in *os.File, from, n int64, buf []byte) error {
	m, err := in.ReadAt(buf[:n], from)
	if err == io.EOF {
		clear(buf[m:n])
		err = nil
	}
	if err == nil {
		_, err = out.WriteAt(buf[:n], to)
	}
	return err
}
