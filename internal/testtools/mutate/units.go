package mutate

// Limits of what Units makes.
const (
	MaxUnits = 64
	MaxBytes = 128 << 10
)

// Changes of a list of messages, after those of words.
const (
	DropUnit = Words + iota
	DoubleUnit
	SwapUnits
	MoveUnit
	TruncateUnit
	GrowUnit
	ShrinkUnit
	CopyBytes
	JoinUnits
	SplitUnit
	unitOps
)

// Units changes a list of messages, such as a peer sends, as a program says.
// The messages that it is given stay as they are; those that come out may alias
// them where they are the same. longest bounds the length of one message.
func Units(units [][]byte, program []byte, longest int) [][]byte {
	list := make([][]byte, len(units), len(units)+8)
	copy(list, units)
	own := make([]bool, len(list), cap(list)) // copies that may be written
	size := 0
	for _, u := range list {
		size += len(u)
	}
	Steps(program, func(s Step) bool {
		n := len(list)
		if n == 0 {
			return false
		}
		i, j := s.Index(n), s.Second(n)
		u := list[i]
		op := int(s.Op) % unitOps
		if op < Words || op == CopyBytes {
			if !own[i] {
				u = append([]byte(nil), u...)
				list[i], own[i] = u, true
			}
		}
		set := func(b []byte) {
			size += len(b) - len(u)
			list[i], own[i] = b, true
		}
		insert := func(at int, b []byte) {
			size += len(b)
			list = append(list, nil)
			own = append(own, false)
			copy(list[at+1:], list[at:])
			copy(own[at+1:], own[at:])
			list[at], own[at] = b, false
		}
		remove := func(at int) {
			size -= len(list[at])
			list = append(list[:at], list[at+1:]...)
			own = append(own[:at], own[at+1:]...)
		}
		switch {
		case op < Words:
			Word(u, op, s, list[j])
		case op == DropUnit:
			remove(i)
		case op == DoubleUnit:
			if n < MaxUnits && size+len(u) <= MaxBytes {
				own[i] = false // two of them share it
				insert(min(n, i+1+int(s.Value&7)), u)
			}
		case op == SwapUnits:
			list[i], list[j] = list[j], list[i]
			own[i], own[j] = own[j], own[i]
		case op == MoveUnit:
			o := own[i]
			remove(i)
			to := min(len(list), i+1+int(s.Value&7))
			insert(to, u)
			own[to] = o
		case op == TruncateUnit:
			set(append([]byte(nil), u[:int(s.Where)%(len(u)+1)]...))
		case op == GrowUnit:
			set(Grow(u, s, list[j], min(longest, len(u)+MaxBytes-size)))
		case op == ShrinkUnit:
			set(Shrink(u, s))
		case op == CopyBytes:
			Copy(u, s, list[j])
		case op == JoinUnits:
			if i+1 < n && len(u)+len(list[i+1]) <= longest {
				next := list[i+1]
				remove(i + 1)
				set(append(append(make([]byte, 0, len(u)+len(next)), u...), next...))
			}
		case op == SplitUnit:
			if n < MaxUnits && len(u) > 1 {
				at := 1 + int(s.Where)%(len(u)-1)
				rest := u[at:]
				set(append([]byte(nil), u[:at]...))
				insert(i+1, rest)
			}
		}
		return true
	})
	return list
}
