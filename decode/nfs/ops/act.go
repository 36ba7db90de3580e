package ops

import "github.com/rpcrdma/toolkit/decode/xdr"

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

// Act is what one call of a procedure or operation does with its arguments.
// Entry.Act fills it in.
type Act struct {
	Class  Class
	places [maxPlaces]Place
	count  int

	// Ranged: the call is about Count bytes at Offset of its Subject; 2^64-1 stands for
	// all bytes up to the end.
	Ranged        bool
	Offset, Count uint64
	// Text is the target of a new symbolic link; nil if it is in a chunk, or was cut by the capture.
	// Stable is how a WRITE has to be stored ("FILE_SYNC4").
	Text   []byte
	Stable string
}

// reset begins another act. Places are overwritten when they are added.
func (a *Act) reset(c Class) {
	a.Class, a.count = c, 0
	a.Ranged, a.Offset, a.Count = false, 0, 0
	a.Text, a.Stable = nil, ""
}

// Places returns where the call acts. Together they decide where a change lands. A call
// that changes nothing has only those that its Subject needs.
func (a *Act) Places() []Place { return a.places[:a.count] }

// Subject returns the place that the call is about: the file of its range, or the
// first place; nil if there is none.
func (a *Act) Subject() *Place {
	switch {
	case a.count == 0:
		return nil
	case a.Ranged:
		return &a.places[a.count-1] // for COPY and CLONE the destination
	}
	return &a.places[0]
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

func (a *Act) object(handle []byte) { a.add(Given, handle, false, nil) }

func (a *Act) entry(dir, name []byte) { a.add(Given, dir, true, name) }

func (a *Act) named(f File, name []byte) { a.add(f, nil, true, name) }

// file is an act on a file of the COMPOUND.
func (a *Act) file(f File) { a.add(f, nil, false, nil) }

// on is an act on the current file handle with a range.
func (a *Act) on(offset, count uint64) {
	a.file(Current)
	a.span(offset, count)
}

func (a *Act) text(d xdr.Data) {
	if len(d.Inline) == int(d.Length) {
		a.Text = d.Inline
	}
}

func (a *Act) span(offset, count uint64) { a.Ranged, a.Offset, a.Count = true, offset, count }

// add adds a Place, field by field: to copy one costs more than the rest of an act.
func (a *Act) add(f File, handle []byte, named bool, name []byte) {
	if a.count == maxPlaces {
		a.Class = Never // the table is wrong: never send such a call
		return
	}
	p := &a.places[a.count]
	p.File, p.Handle, p.Named, p.Name = f, handle, named, name
	a.count++
}
