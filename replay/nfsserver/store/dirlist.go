package store

// FirstCookie is the lowest cookie of ReadDir: NFSv3 servers need some for "."
// and "..", and RFC 8881, section 18.23.3 reserves 0, 1 and 2.
const FirstCookie = 3

// DirList receives the entries of a directory. A caller sets Max and Attrs; the
// memory is used again by the next ReadDir.
type DirList struct {
	// Max is how many entries to read at most, at least 1.
	Max int
	// Attrs asks for the attributes of each entry.
	Attrs bool

	Entries []DirEntry
	EOF     bool
	// Verifier goes with the cookies (cookieverf3). A store that has to give
	// them up tells by ErrBadCookie. The caller passes 0 with cookie 0.
	Verifier uint64
	// Dir are the attributes of the directory.
	Dir Attr

	names []byte
}

// DirEntry is a name in a directory. "." and ".." are not among them.
type DirEntry struct {
	Name   []byte // valid until the next use of the list
	Cookie uint64 // continues after this entry
	Handle Handle
	Type   Type
	// Attr is filled if DirList.Attrs is set and HasAttr says so: an entry may
	// have gone meanwhile.
	Attr    Attr
	HasAttr bool
}

// Reset empties the list; stores call it.
func (l *DirList) Reset() {
	l.Entries, l.names = l.Entries[:0], l.names[:0]
	l.EOF, l.Verifier = false, 0
}

// Full reports whether no more entries are wanted.
func (l *DirList) Full() bool { return len(l.Entries) >= max(l.Max, 1) }

// Add appends an entry with a copy of the name, for stores. The entry's other
// fields are zero. It is valid until the next Add.
func (l *DirList) Add(name []byte, cookie uint64) *DirEntry { return add(l, name, cookie) }

// AddString is Add.
func (l *DirList) AddString(name string, cookie uint64) *DirEntry { return add(l, name, cookie) }

func add[T string | []byte](l *DirList, name T, cookie uint64) *DirEntry {
	start := len(l.names)
	// If this moves the memory, earlier names keep the old one.
	l.names = append(l.names, name...)
	l.Entries = append(l.Entries, DirEntry{Name: l.names[start:len(l.names):len(l.names)], Cookie: cookie})
	return &l.Entries[len(l.Entries)-1]
}
