package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors of sections that cannot be merged. The text of the error says more.
var (
	ErrNoState = errors.New("there is no state")
	ErrOptions = errors.New("states with different options cannot be merged")
	// ErrChanged says that the second pass over a Source gave other units than the first.
	ErrChanged = errors.New("the states changed while they were read")
)

// Source gives units in ascending order of their names, none twice. It can be read more than once, and gives the same
// units each time; a unit need not outlive the call of f. Each ends with the first error of f.
type Source interface {
	Each(f func(*Unit) error) error
}

// Units is a Source in memory; they are in the order of their names.
type Units []*Unit

// Each implements Source.
func (l Units) Each(f func(*Unit) error) error {
	for _, u := range l {
		if err := f(u); err != nil {
			return err
		}
	}
	return nil
}

// Each implements Source.
func (f *File) Each(do func(*Unit) error) error { return Units(f.units).Each(do) }

// Kind describes the sections that an analyzer saves: they begin with the options that must be the same in all
// states to be merged.
type Kind[O any] struct {
	Name    string // of the section
	Version uint64 // of its encoding
	What    string // the section as a noun, such as "a report"
	// Code codes the options.
	Code func(*O, *Coder)
	// Differ says in what options differ; it is empty if they are equal.
	Differ func(a, b *O) string
}

// Section encodes a section.
func (k *Kind[O]) Section(options *O, code func(*Coder)) Section {
	c := NewWriter(nil)
	k.Code(options, c)
	code(c)
	return Section{Kind: k.Name, Version: k.Version, Body: c.Bytes()}
}

// Read reads the section of a unit; code reads what follows the options.
func (k *Kind[O]) Read(u *Unit, code func(*Coder, *O)) (*O, error) {
	x := u.Section(k.Name)
	switch {
	case x == nil:
		return nil, fmt.Errorf("%w of %s: it was saved by another command", ErrNoState, k.What)
	case x.Version != k.Version:
		return nil, fmt.Errorf("%w: encoding %d of %s, and this program knows encoding %d", ErrVersion, x.Version, k.What, k.Version)
	}
	c, o := NewReader(x.Body), new(O)
	if k.Code(o, c); c.Err() == nil {
		code(c, o)
	}
	if err := c.End(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, strings.TrimPrefix(strings.TrimPrefix(k.What, "a "), "the "), err)
	}
	return o, nil
}

// Survey is the first of two passes over units. Of each it keeps what an analyzer needs of all of them before it can
// add up any: S is what is kept. Units with other options than most of them are left out.
type Survey[O, S any] struct {
	Kind *Kind[O]
	New  func(*O) *S
	sets map[string]*set[O, S]
	in   *set[O, S] // after Decide
}

// set is what is kept of units with the same options.
type set[O, S any] struct {
	key     string // the encoded options
	options *O
	kept    *S
	names   map[string]int // of the units; their place in the order of Add
}

// Left is a unit that is not merged.
type Left struct {
	Name string // of the unit
	Err  error
}

// Add adds a unit: read decodes it, and keep keeps what is needed of it. Of a unit that cannot be read, nothing is
// kept. A unit that was added already changes nothing.
func (s *Survey[O, S]) Add(u *Unit, read func(*Coder, *O), keep func(*S)) error {
	o, err := s.Kind.Read(u, read)
	if err != nil {
		return err
	}
	w := NewWriter(nil)
	s.Kind.Code(o, w)
	key := string(w.Bytes())
	x := s.sets[key]
	if x == nil {
		if s.sets == nil {
			s.sets = make(map[string]*set[O, S])
		}
		x = &set[O, S]{key: key, options: o, kept: s.New(o), names: make(map[string]int)}
		s.sets[key] = x
	}
	if _, again := x.names[u.Name()]; again {
		return nil
	}
	x.names[u.Name()] = len(x.names)
	keep(x.kept)
	return nil
}

// Decide ends the pass. It returns the units that are left out, ordered by name, since most units have other
// options. Which these are does not depend on the order in which units were added.
func (s *Survey[O, S]) Decide() (left []Left) {
	var sets []*set[O, S]
	for _, x := range s.sets {
		sets = append(sets, x)
	}
	slices.SortFunc(sets, func(a, b *set[O, S]) int {
		return cmp.Or(cmp.Compare(len(b.names), len(a.names)), strings.Compare(a.key, b.key))
	})
	if len(sets) == 0 {
		return nil
	}
	s.in = sets[0]
	for _, x := range sets[1:] {
		err := fmt.Errorf("%w: %s", ErrOptions, s.Kind.Differ(s.in.options, x.options))
		for name := range x.names {
			left = append(left, Left{name, err})
		}
	}
	s.sets = nil
	slices.SortFunc(left, func(a, b Left) int { return strings.Compare(a.Name, b.Name) })
	return left
}

// Options are those of the units that are merged. Call it, and all that follow, after Decide.
func (s *Survey[O, S]) Options() *O { return s.in.options }

// Kept is what was kept of the units that are merged.
func (s *Survey[O, S]) Kept() *S { return s.in.kept }

// Len is how many units are merged.
func (s *Survey[O, S]) Len() int {
	if s.in == nil {
		return 0
	}
	return len(s.in.names)
}

// Each is the second pass: it calls f with each unit that is merged, in the order of their names, and its place in
// the order of Add. A Source that no longer gives all of them is an error.
func (s *Survey[O, S]) Each(src Source, f func(u *Unit, place int) error) error {
	if s.in == nil {
		return fmt.Errorf("%w of %s", ErrNoState, s.Kind.What)
	}
	n, last := 0, ""
	err := src.Each(func(u *Unit) error {
		place, ok := s.in.names[u.Name()]
		if !ok {
			return nil
		}
		if n > 0 && u.Name() <= last {
			return fmt.Errorf("%w: units are not in order", ErrChanged)
		}
		n, last = n+1, u.Name()
		return f(u, place)
	})
	if err == nil && n != len(s.in.names) {
		err = fmt.Errorf("%w: %d of %d units are there", ErrChanged, n, len(s.in.names))
	}
	return err
}

// Surveyor is the first pass of an analyzer.
type Surveyor interface {
	Survey(*Unit) error
	Decide() []Left
}

// All makes the first pass over a source. A unit that cannot be merged is an error.
func All(src Source, to ...Surveyor) error {
	err := src.Each(func(u *Unit) error {
		for _, s := range to {
			if err := s.Survey(u); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range to {
		if left := s.Decide(); len(left) > 0 {
			return left[0].Err
		}
	}
	return nil
}
