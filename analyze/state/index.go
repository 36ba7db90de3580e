package state

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Index is a Source of units in files: it knows where they are, and reads one at a time.
type Index struct {
	// UnitBytes is how large a unit may be; 0 stands for DefaultUnitBytes.
	UnitBytes int64

	files  []string
	list   []place
	sorted bool
}

// DefaultUnitBytes is how large a unit may be that an Index reads.
const DefaultUnitBytes = 64 << 20

// place is where a unit is.
type place struct {
	name   [sha256.Size]byte
	file   int
	offset int64
	size   int64 // as stored
	// damaged says that it is of input that was truncated or malformed.
	damaged bool
}

// limit is how many bytes a unit may have.
func (x *Index) limit() int64 {
	if x.UnitBytes <= 0 {
		return DefaultUnitBytes
	}
	return x.UnitBytes
}

// Add adds the units of a file. It reads all of the file, and checks its form. What the sections hold is for their
// analyzers to check.
func (x *Index) Add(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	had, part := len(x.list), false
	err = scan(f, x.limit, func(offset, size int64, u *Unit) {
		in := u.Input()
		part = part || in.Part
		x.list = append(x.list, place{u.name, len(x.files), offset, size, in.Damaged})
	})
	if err == nil && part {
		err = ErrPart
	}
	if err != nil {
		x.list = x.list[:had]
		return err
	}
	x.files, x.sorted = append(x.files, name), false
	return nil
}

// sort puts the units in order. The same one may be in several files.
func (x *Index) sort() {
	if x.sorted {
		return
	}
	slices.SortStableFunc(x.list, func(a, b place) int { return bytes.Compare(a.name[:], b.name[:]) })
	x.list = slices.CompactFunc(x.list, func(a, b place) bool { return a.name == b.name })
	x.sorted = true
}

// Len is how many units there are.
func (x *Index) Len() int {
	x.sort()
	return len(x.list)
}

// Each implements Source.
func (x *Index) Each(f func(*Unit) error) error {
	x.sort()
	var in *os.File
	last := -1
	r := &unitReader{}
	defer func() {
		in.Close()
		r.pack.close()
	}()
	for i := range x.list {
		p := &x.list[i]
		if p.file != last {
			in.Close()
			var err error
			if in, err = os.Open(x.files[p.file]); err != nil {
				return err
			}
			last = p.file
		}
		r.r = bufio.NewReader(io.NewSectionReader(in, p.offset, p.size))
		u, err := r.unit(x.limit())
		if err != nil || u.name != p.name {
			return fmt.Errorf("%s: %w", x.files[p.file], ErrChanged)
		}
		if err := f(u); err != nil {
			return fmt.Errorf("%s: %w", x.files[p.file], err)
		}
	}
	return nil
}

// scan reads a file from its beginning, one unit at a time. limit is how many bytes the next one may have; offset and
// size are where a unit is in the file.
func scan(in io.Reader, limit func() int64, f func(offset, size int64, u *Unit)) error {
	sum := sha256.New()
	r := &unitReader{r: bufio.NewReaderSize(in, 64<<10), sum: sum}
	defer r.pack.close()
	head, err := r.bytes(int64(len(Magic)) + 1)
	switch {
	case err != nil && !errors.Is(err, errShort):
		return err
	case len(head) < len(Magic) && strings.HasPrefix(Magic, string(head)):
		return fmt.Errorf("%w: %w", ErrDamaged, errShort)
	case !Is(head):
		return fmt.Errorf("%w: it does not begin like one", ErrFormat)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case head[len(Magic)] != version:
		return fmt.Errorf("%w: format %d, and this program knows format %d", ErrVersion, head[len(Magic)], version)
	}
	n, err := r.uvarint()
	if err == nil && n > maxUnits {
		err = fmt.Errorf("a list of %d, where at most %d are allowed", n, maxUnits)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	var last []byte
	for i := range n {
		at, most := r.n, limit()
		u, err := r.unit(most)
		switch {
		case errors.Is(err, ErrSize):
			return fmt.Errorf("%w: unit %d of %d has more than %d bytes", ErrSize, i+1, n, most)
		case err != nil:
			return fmt.Errorf("%w: unit %d of %d, at byte %d: %w", ErrDamaged, i+1, n, at, err)
		case i > 0 && bytes.Compare(last, u.name[:]) >= 0:
			return fmt.Errorf("%w: unit %d of %d, at byte %d: it is not in order", ErrDamaged, i+1, n, at)
		}
		last = append(last[:0], u.name[:]...)
		f(at, r.n-at, u)
	}
	want := sum.Sum(nil)
	r.sum = nil
	got, err := r.bytes(sha256.Size)
	if err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("%w: its checksum is wrong, or bytes are missing at its end", ErrDamaged)
	}
	if _, err := r.r.ReadByte(); err != io.EOF {
		return fmt.Errorf("%w: bytes follow its checksum", ErrDamaged)
	}
	return nil
}

// unitReader reads units from a stream.
type unitReader struct {
	r    *bufio.Reader
	sum  io.Writer // gets all that is read; may be nil
	n    int64     // bytes read
	pack unpacker
}

// bytes reads n bytes. Memory grows with what is really there.
func (r *unitReader) bytes(n int64) ([]byte, error) {
	var b bytes.Buffer
	got, err := io.CopyN(&b, r.r, n)
	r.n += got
	if r.sum != nil {
		_, _ = r.sum.Write(b.Bytes())
	}
	if err == io.EOF {
		err = errShort
	}
	return b.Bytes(), err
}

// uvarint reads a number.
func (r *unitReader) uvarint() (uint64, error) {
	var b [binary.MaxVarintLen64]byte
	for i := range b {
		one, err := r.bytes(1)
		if err != nil {
			return 0, err
		}
		if b[i] = one[0]; b[i] >= 0x80 {
			continue
		}
		c := NewReader(b[:i+1])
		v := c.uvarint()
		return v, c.End()
	}
	return 0, errors.New("a number is not encoded as it should be")
}

// unit reads a unit of at most most bytes.
func (r *unitReader) unit(most int64) (*Unit, error) {
	size, err := r.uvarint()
	if err != nil {
		return nil, err
	}
	if most < 0 || size > uint64(most) {
		return nil, ErrSize
	}
	n, err := r.uvarint()
	if err != nil {
		return nil, err
	}
	if n > uint64(mostFrame(int64(size))) {
		return nil, fmt.Errorf("%d compressed bytes for %d", n, size)
	}
	frame, err := r.bytes(int64(n))
	if err != nil {
		return nil, err
	}
	raw, err := r.pack.unit(frame, int64(size))
	if err != nil {
		return nil, err
	}
	return decodeUnit(raw)
}

// Damaged is how many units are of input that was truncated or malformed.
func (x *Index) Damaged() (n int) {
	x.sort()
	for i := range x.list {
		if x.list[i].damaged {
			n++
		}
	}
	return n
}

// Write writes a file of all units.
func (x *Index) Write(w io.Writer) error {
	sum := sha256.New()
	both := bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	c := NewWriter(append([]byte(Magic), version))
	n := x.Len()
	Number(c, &n)
	_, _ = both.Write(c.Bytes()) // an error is found by Flush
	p := newPacker()
	err := x.Each(func(u *Unit) error {
		c := NewWriter(nil)
		p.unit(c, u)
		_, err := both.Write(c.Bytes())
		return err
	})
	if err == nil {
		err = both.Flush()
	}
	if err == nil {
		_, err = w.Write(sum.Sum(nil))
	}
	return err
}
