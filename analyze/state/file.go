package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
)

// Magic are the first bytes of a file.
const Magic = "\x89RPCS\r\n\x1a"

// version counts changes of the container; sections have versions of their own. In version 1 units were not compressed.
const version = 2

// Limits of a file.
const (
	maxUnits    = 1 << 20
	maxSections = 16
	maxKind     = 32
)

// Errors of Read. The text of the error says more.
var (
	ErrFormat  = errors.New("this is not a saved state")
	ErrVersion = errors.New("this state was saved by another version")
	ErrDamaged = errors.New("the saved state is damaged")
	ErrSize    = errors.New("the saved state is too large")
	ErrPart    = errors.New("this is a part of what a fleet knows of a tap: rpcrdma-fleet shows all of it")
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
	raw      []byte    // encoded
	sections []Section // their bodies are parts of raw
}

// NewUnit makes a unit. No two sections have the same kind.
func NewUnit(sections ...Section) *Unit {
	list := slices.SortedFunc(slices.Values(sections), func(a, b Section) int { return strings.Compare(a.Kind, b.Kind) })
	size := maxSections * (maxKind + 3*binary.MaxVarintLen64)
	for i := range list {
		size += len(list[i].Body)
	}
	c := NewWriter(make([]byte, 0, size))
	codeSections(c, &list)
	u, err := decodeUnit(c.b)
	if err != nil {
		panic(err) // it was just encoded
	}
	return u
}

func decodeUnit(raw []byte) (*Unit, error) {
	c, u := NewReader(raw), &Unit{name: sha256.Sum256(raw), raw: raw}
	if codeSections(c, &u.sections); c.End() != nil {
		return nil, c.Err()
	}
	for k := 1; k < len(u.sections); k++ {
		if u.sections[k-1].Kind >= u.sections[k].Kind {
			return nil, errors.New("its sections are not in order")
		}
	}
	return u, nil
}

func codeSections(c *Coder, list *[]Section) {
	List(c, list, maxSections, func(s *Section) {
		c.Text(&s.Kind, maxKind)
		Number(c, &s.Version)
		c.Blob(&s.Body, len(c.b))
	})
}

// Name identifies the unit by its contents.
func (u *Unit) Name() string { return string(u.name[:]) }

// Size is how many bytes the unit has when it is not compressed.
func (u *Unit) Size() int { return len(u.raw) }

// Section returns a section; nil if there is none of that kind.
func (u *Unit) Section(kind string) *Section {
	for i := range u.sections {
		if u.sections[i].Kind == kind {
			return &u.sections[i]
		}
	}
	return nil
}

// Sections are all sections, in the order of their kinds.
func (u *Unit) Sections() []Section { return slices.Clone(u.sections) }

// File is a set of units. The zero File is empty.
type File struct{ units []*Unit }

// Units are in the order of their names.
func (f *File) Units() []*Unit { return f.units }

// Size is how many bytes the units have when they are not compressed.
func (f *File) Size() (n int) {
	for _, u := range f.units {
		n += u.Size()
	}
	return n
}

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
	p := newPacker()
	for _, u := range f.units {
		p.unit(c, u)
	}
	sum := sha256.Sum256(c.b[start:])
	return append(c.b, sum[:]...)
}

// Write writes the file.
func (f *File) Write(w io.Writer) error {
	_, err := w.Write(f.Append(nil))
	return err
}

// Read reads a file whose units have at most most bytes together, not compressed. What the sections hold is for their
// analyzers to check.
func Read(r io.Reader, most int64) (*File, error) {
	f, had := &File{}, int64(0)
	err := scan(r, func() int64 { return most - had }, func(_, _ int64, u *Unit) {
		had += int64(u.Size())
		f.units = append(f.units, u)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Decode is Read of bytes.
func Decode(b []byte, most int64) (*File, error) { return Read(bytes.NewReader(b), most) }
