package expected

// Why says why bytes that were written were never compared.
type Why uint8

// Reasons.
const (
	// Overwritten: they were overwritten, truncated or deallocated before a READ returned them.
	Overwritten Why = iota
	// Removed: the file was removed before a READ returned them.
	Removed
	// AnyOrder: concurrent calls wrote there, and any of them may have come last.
	AnyOrder
	// NoPattern: zeros were written, which look the same as if nothing had been written.
	NoPattern
	// NotReadBack: they should have been read at the end, and were not.
	NotReadBack
	// Unreadable: reading them at the end failed.
	Unreadable
	// Untold: the expected state had no room for more ranges.
	Untold
	// Uncommitted: the server was restarted before a COMMIT (RFC 8881, section 18.32).
	Uncommitted

	whys
)

func (w Why) String() string {
	return [...]string{
		Overwritten: "written over, cut off or punched out before they were read",
		Removed:     "in files that were removed before they were read",
		AnyOrder:    "written by calls under way together: either may have come last",
		NoPattern:   "zeros, of which nobody can tell whether they were written",
		NotReadBack: "not read back at the end",
		Unreadable:  "could not be read back",
		Untold:      "in more ranges than are kept",
		Uncommitted: "not committed when the server was restarted",
	}[w]
}

// account counts written bytes.
type account struct {
	written uint64
	run     uint64 // that were compared and are no longer in a file
	never   [whys]uint64
}

// Account is what became of the written bytes: Written = Run + End + all of Never.
type Account struct {
	Written uint64 // that the server has acknowledged, or the preparation has written
	Run     uint64 // compared during the run
	End     uint64 // compared at the end only
	Never   [whys]uint64
}

// replaced counts the former content of a range.
func (l *State) replaced(f *file, from, to uint64, why Why) {
	f.fills.each(from, to, func(x filled) {
		switch {
		case !x.mine():
		case x.read:
			l.account.run += x.to - x.from
		default:
			l.account.never[why] += x.to - x.from
		}
	})
}

// Uncommitted notes that the server may have lost what was written to a file: its content is now
// unknown.
func (l *State) Uncommitted(object int) {
	f := l.file(object)
	l.replaced(f, 0, forever, Uncommitted)
	f.fills.set(0, forever, fill{kind: anything})
	f.forget()
}

// Account returns what became of the written bytes. end are those that were compared only at the
// end, and unreadable those that could not be.
func (l *State) Account(end, unreadable uint64) Account {
	a := Account{Written: l.account.written, Run: l.account.run, End: end, Never: l.account.never}
	rest := uint64(0)
	for _, f := range l.files {
		f.fills.each(0, forever, func(x filled) {
			switch n := x.to - x.from; {
			case !x.mine():
			case x.read:
				a.Run += n
			case f.checked.gone:
				a.Never[Removed] += n
			default:
				rest += n
			}
		})
	}
	a.Never[Unreadable] += min(unreadable, rest)
	if done := end + unreadable; rest > done {
		a.Never[NotReadBack] += rest - done
	}
	sum := a.Run + a.End
	for _, n := range a.Never {
		sum += n
	}
	if a.Written > sum {
		a.Never[Untold] += a.Written - sum
	}
	return a
}
