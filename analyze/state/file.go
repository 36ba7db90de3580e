package state

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Magic are the first bytes of a file.
const Magic = "\x89RPCS\r\n\x1a"

// version counts changes of the container; sections have versions of their own.
const version = 1

// Limits of a file.
const (
	maxUnits    = 1 << 20
	maxSections = 16
	maxKind     = 32
)

// Errors of Read. The text of the error says more.
var (
	ErrFormat  = errors.New("this is no saved state")
	ErrVersion = errors.New("this state was saved by another version")
	ErrDamaged = errors.New("the saved state is damaged")
	ErrSize    = errors.New("the saved state is too large")
)

// Is reports whether a file that begins with these bytes is a saved state. It needs 8 of them.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte(Magic)) }

// Section is what one analyzer saved.
type Section struct {
	Kind    string // report, check, connections, …
	Version uint64 // of the analyzer's encoding
	Body    []byte
}

// Unit is what one run found of one tap. It does not change.
type Unit struct {
	name     [sha256.Size]byte
	sections []Section
	size     int
}

// NewUnit makes a unit. No two sections have the same kind.
func NewUnit(sections ...Section) *Unit {
	u := &Unit{sections: slices.Clone(sections)}
	slices.SortFunc(u.sections, func(a, b Section) int { return strings.Compare(a.Kind, b.Kind) })
	c := NewWriter(nil)
	u.code(c)
	u.name, u.size = sha256.Sum256(c.b), len(c.b)
	return u
}

func (u *Unit) code(c *Coder) {
	List(c, &u.sections, maxSections, func(s *Section) {
		c.Text(&s.Kind, maxKind)
		Number(c, &s.Version)
		c.Blob(&s.Body, len(c.b))
	})
}

// Name identifies the unit by its contents.
func (u *Unit) Name() string { return string(u.name[:]) }

// Section returns a section; nil if there is none of that kind.
func (u *Unit) Section(kind string) *Section {
	for i := range u.sections {
		if u.sections[i].Kind == kind {
			return &u.sections[i]
		}
	}
	return nil
}

// File is a set of units. The zero File is empty.
type File struct{ units []*Unit }

// Units are in the order of their names.
func (f *File) Units() []*Unit { return f.units }

// Add adds units; one that is in the set already changes nothing.
func (f *File) Add(units ...*Unit) {
	f.units = append(slices.Clone(f.units), units...)
	slices.SortFunc(f.units, compare)
	f.units = slices.CompactFunc(f.units, func(a, b *Unit) bool { return a.name == b.name })
}

func compare(a, b *Unit) int { return bytes.Compare(a.name[:], b.name[:]) }

// Merge adds the units of other files.
func (f *File) Merge(others ...*File) {
	var all []*Unit
	for _, o := range others {
		all = append(all, o.units...)
	}
	f.Add(all...)
}

// Append appends the encoded file to b.
func (f *File) Append(b []byte) []byte {
	start := len(b)
	c := NewWriter(append(append(b, Magic...), version))
	n := len(f.units)
	Number(c, &n)
	for _, u := range f.units {
		u.code(c)
	}
	sum := sha256.Sum256(c.b[start:])
	return append(c.b, sum[:]...)
}

// Write writes the file.
func (f *File) Write(w io.Writer) error {
	_, err := w.Write(f.Append(nil))
	return err
}

// Read reads a file of at most most bytes. What the sections hold is for their analyzers to check.
func Read(r io.Reader, most int64) (*File, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) > most:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrSize, most)
	}
	return Decode(b)
}

// Decode decodes a file. The File refers to b.
func Decode(b []byte) (*File, error) {
	const head = len(Magic) + 1
	switch {
	case len(b) < len(Magic) && strings.HasPrefix(Magic, string(b)):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, errShort)
	case !Is(b):
		return nil, fmt.Errorf("%w: it does not begin like one", ErrFormat)
	case len(b) < head+sha256.Size:
		return nil, fmt.Errorf("%w: %w", ErrDamaged, errShort)
	case b[len(Magic)] != version:
		return nil, fmt.Errorf("%w: format %d, and this program knows format %d", ErrVersion, b[len(Magic)], version)
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if real := sha256.Sum256(body); !bytes.Equal(real[:], sum) {
		return nil, fmt.Errorf("%w: its checksum is wrong, or bytes are missing at its end", ErrDamaged)
	}
	c := NewReader(body[head:])
	f := &File{}
	n := 0
	c.Count(&n, 1, maxUnits)
	for i := range n {
		at := len(body) - len(c.b)
		from := c.b
		u := &Unit{}
		u.code(c)
		if c.err != nil {
			return nil, fmt.Errorf("%w: unit %d of %d, at byte %d: %w", ErrDamaged, i+1, n, at, c.err)
		}
		u.size = len(from) - len(c.b)
		u.name = sha256.Sum256(from[:u.size])
		for k := 1; k < len(u.sections); k++ {
			if u.sections[k-1].Kind >= u.sections[k].Kind {
				return nil, fmt.Errorf("%w: unit %d of %d, at byte %d: its sections are not in order", ErrDamaged, i+1, n, at)
			}
		}
		if k := len(f.units); k > 0 && compare(f.units[k-1], u) >= 0 {
			return nil, fmt.Errorf("%w: unit %d of %d, at byte %d: it is not in order", ErrDamaged, i+1, n, at)
		}
		f.units = append(f.units, u)
	}
	if err := c.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return f, nil
}
