package state

import (
	"cmp"
	"sort"
)

// Input says what is known of the input of a unit, whatever was computed from it.
type Input struct {
	// Damaged says that it was truncated or malformed.
	Damaged bool
	// Tap is the name of the tap, if it has one besides the names of its files.
	Tap string
	// Captures are its files, in their order, if packets are numbered over all of them. The first ones may be missing.
	Captures []Capture
	// Part says that connections that have ended are in other units: see onepass.Join.
	Part bool
}

// Capture is a file, and how many packets there are before it.
type Capture struct {
	Name   string
	Before uint64
}

// Of finds the file that has a packet, and the packet's number in it. The name is empty if that is not known.
func (i *Input) Of(packet uint64) (name string, number uint64) {
	n := sort.Search(len(i.Captures), func(k int) bool { return i.Captures[k].Before >= packet })
	if n == 0 {
		return "", 0
	}
	c := &i.Captures[n-1]
	return c.Name, packet - c.Before
}

const (
	inputKind = "input"
	// inputVersion is of an Input without the name of the tap, inputTap of one with it, inputCaptures of one with both, and
	// inputPart of one that is a Part.
	inputVersion, inputTap, inputCaptures, inputPart = 1, 2, 3, 4
	maxTap                                           = 1 << 10
	maxName                                          = 1 << 12
	// MaxCaptures is how many files an Input has at most.
	MaxCaptures = 1 << 16
)

// Section encodes it.
func (i *Input) Section() Section {
	c, version := NewWriter(nil), uint64(inputVersion)
	if i.Tap != "" {
		version = inputTap
	}
	if len(i.Captures) > 0 {
		version = inputCaptures
	}
	if i.Part {
		version = inputPart
	}
	i.code(c, version)
	return Section{inputKind, version, c.Bytes()}
}

func (i *Input) code(c *Coder, version uint64) {
	c.Flag(&i.Damaged)
	if version >= inputTap {
		c.Text(&i.Tap, maxTap)
	}
	if version >= inputCaptures {
		List(c, &i.Captures, MaxCaptures, func(x *Capture) {
			c.Text(&x.Name, maxName)
			Number(c, &x.Before)
		})
	}
	i.Part = version == inputPart
}

// Input says what is known of the input of a unit. One about which nothing can be read counts as damaged.
func (u *Unit) Input() Input {
	s := u.Section(inputKind)
	if s == nil || s.Version < inputVersion || s.Version > inputPart {
		return Input{Damaged: true}
	}
	c := NewReader(s.Body)
	var i Input
	if i.code(c, s.Version); c.End() != nil {
		return Input{Damaged: true}
	}
	return i
}

// Tap is what tells taps apart: the name of the unit's tap, or of the unit if its tap has none. Units of one tap are of different
// times.
func (u *Unit) Tap() string { return cmp.Or(u.Input().Tap, u.Name()) }
