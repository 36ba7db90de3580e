package ops

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Class says what a call may do to a file system. The zero Class is that of what
// is not known.
type Class uint8

// Classes.
const (
	// Unknown is not in the table.
	Unknown Class = iota
	// Nothing changes nothing that is stored. Times of last access do not count.
	Nothing
	// Holds changes nothing that is stored, but keeps others from what they want
	// to do while it lasts: opens, locks, delegations, layouts.
	Holds
	// Changes what is stored: content, names, attributes.
	Changes
	// Never is not replayed, wherever it acts: it reaches beyond the file system
	// (callbacks, locks of other protocols, the server's registry), or makes the
	// server call another host.
	Never
	// Composed is a COMPOUND: as strong as the strongest of its operations.
	Composed
)

var classNames = [...]string{"unknown", "changes nothing", "holds", "changes", "never replayed", "composed"}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// File says which file handle a Place belongs to.
type File uint8

// Files.
const (
	// Given is a handle among the arguments: NFSv2, NFSv3, NFSACL.
	Given File = iota
	// Current and Saved are the file handles of a COMPOUND.
	Current
	Saved
)

// Place is where a call acts: on an object, or on a name in a directory.
type Place struct {
	File   File
	Handle []byte // if File is Given; aliases the message
	Named  bool   // Name is meant, and File is the directory
	Name   []byte // aliases the message
}

// maxPlaces is how many places one operation may have: RENAME, LINK.
const maxPlaces = 2

// Act is what one call of a procedure or operation does, its arguments
// considered. It is filled by Entry.Act.
type Act struct {
	Class  Class
	places [maxPlaces]Place
	count  int
}

// Places are where the call acts. All of them decide where a change lands.
func (a *Act) Places() []Place { return a.places[:a.count] }

func (a *Act) add(p Place) {
	if a.count == maxPlaces {
		a.Class = Never // the table is wrong: nothing may come of it
		return
	}
	a.places[a.count] = p
	a.count++
}

func (a *Act) object(handle []byte) { a.add(Place{Handle: handle}) }

func (a *Act) entry(dir, name []byte) { a.add(Place{Handle: dir, Named: true, Name: name}) }

func (a *Act) named(f File, name []byte) { a.add(Place{File: f, Named: true, Name: name}) }

// Effect says what an operation does to the file handles of a COMPOUND.
type Effect uint8

// Effects.
const (
	// Keeps leaves both as they are.
	Keeps Effect = iota
	// Puts makes the handle among the arguments the current one (PUTFH).
	Puts
	// PutsRoot and PutsPublic go to the places that the server has for them.
	PutsRoot
	PutsPublic
	// Descends goes to a name in the current directory: LOOKUP, CREATE, and OPEN
	// by name.
	Descends
	// Ascends goes to the parent (LOOKUPP).
	Ascends
	// EntersAttributes goes to the directory of named attributes (OPENATTR).
	EntersAttributes
	// Saves and Restores copy one to the other.
	Saves
	Restores
	// Consumes leaves no current file handle (SECINFO, RFC 8881, section
	// 2.6.3.1.1.8). NFSv4.0 keeps it, and nobody may rely on that.
	Consumes
)

// Entry is what is known of a procedure or operation.
type Entry struct {
	// Class is the strongest that its arguments can make of it, Composed apart. Act reports that of a call.
	Class Class
	// Effect is on the file handles of a COMPOUND.
	Effect Effect
	// Minor is the first minor version of NFSv4 that has the operation.
	Minor uint8
	// act adds places, and may weaken the class, or turn it into Never.
	act func(m xdr.Message, a *Act)
}

// Act tells what a call with these arguments does. Arguments of another type than
// the procedure's are never replayed.
func (e *Entry) Act(args xdr.Message, a *Act) {
	*a = Act{Class: e.Class}
	if e.act != nil {
		e.act(args, a)
	}
}

// of makes an act for arguments of one type.
func of[T any](f func(m *T, a *Act)) func(xdr.Message, *Act) {
	return func(m xdr.Message, a *Act) {
		if t, ok := any(m).(*T); ok {
			f(t, a)
		} else {
			a.Class = Never
		}
	}
}

// PlainName reports whether a name is that of an entry of the directory that it is
// looked up in, and leads nowhere else: not empty, not "." or "..", without slash
// and NUL.
func PlainName(name []byte) bool {
	switch string(name) {
	case "", ".", "..":
		return false
	}
	return bytes.IndexByte(name, '/') < 0 && bytes.IndexByte(name, 0) < 0
}
