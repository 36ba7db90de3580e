package state

// Input says what is known of the input of a unit, whatever was computed from it.
type Input struct {
	// Damaged says that it was truncated or malformed.
	Damaged bool
}

const (
	inputKind    = "input"
	inputVersion = 1
)

// Section encodes it.
func (i *Input) Section() Section {
	c := NewWriter(nil)
	c.Flag(&i.Damaged)
	return Section{inputKind, inputVersion, c.Bytes()}
}

// Input says what is known of the input of a unit. One about which nothing can be read counts as damaged.
func (u *Unit) Input() Input {
	s := u.Section(inputKind)
	if s == nil || s.Version != inputVersion {
		return Input{Damaged: true}
	}
	c := NewReader(s.Body)
	var i Input
	c.Flag(&i.Damaged)
	return Input{Damaged: i.Damaged || c.End() != nil}
}
