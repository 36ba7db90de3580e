package state

import "cmp"

// Input says what is known of the input of a unit, whatever was computed from it.
type Input struct {
	// Damaged says that it was truncated or malformed.
	Damaged bool
	// Tap is the name of the tap, if it has one besides the names of its files.
	Tap string
}

const (
	inputKind = "input"
	// inputVersion is of an Input without the name of the tap, inputTap of one with it.
	inputVersion, inputTap = 1, 2
	maxTap                 = 1 << 10
)

// Section encodes it.
func (i *Input) Section() Section {
	c, version := NewWriter(nil), uint64(inputVersion)
	if i.Tap != "" {
		version = inputTap
	}
	i.code(c, version)
	return Section{inputKind, version, c.Bytes()}
}

func (i *Input) code(c *Coder, version uint64) {
	c.Flag(&i.Damaged)
	if version == inputTap {
		c.Text(&i.Tap, maxTap)
	}
}

// Input says what is known of the input of a unit. One about which nothing can be read counts as damaged.
func (u *Unit) Input() Input {
	s := u.Section(inputKind)
	if s == nil || s.Version != inputVersion && s.Version != inputTap {
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
