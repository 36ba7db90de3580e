package ops

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Ref is a file as a COMPOUND refers to it: by handle, by a name in a directory, or
// both. Slices alias the messages; the zero Ref is an unknown file.
type Ref struct {
	Handle []byte // nil if it is not known
	// Dir is the handle of the directory in which Name was looked up, nil if that
	// is not known. Name is nil if the file was reached without one.
	Dir, Name []byte
}

// Is reports whether a Ref was reached by a name in a directory.
func (r *Ref) Is(dir, name []byte) bool {
	return r.Name != nil && bytes.Equal(r.Name, name) && bytes.Equal(r.Dir, dir)
}

// FileWalk follows the files of a COMPOUND and its reply by handles and names. The zero FileWalk
// stands before the first operation.
type FileWalk struct {
	Walk[Ref, refs]
	outcome Outcome
}

// Reset begins another COMPOUND. A FileWalk that is used again allocates nothing.
func (t *FileWalk) Reset() { *t = FileWalk{Walk: Walk[Ref, refs]{Space: refs{}}} }

// Step applies an operation, and learns the handle of the current file from its results,
// if they show it.
func (t *FileWalk) Step(number uint32, args, results xdr.Message) {
	t.Walk.Step(number, args)
	if results == nil {
		return
	}
	if e := Operation(number); e != nil && e.Gives.Has(Handle) {
		if e.Outcome(results, &t.outcome); t.outcome.Handle != nil {
			t.Current.Handle = t.outcome.Handle
		}
	}
}

// At returns the file, or the directory, of a place.
func (t *FileWalk) At(p *Place) Ref {
	switch p.File {
	case Given:
		return Ref{Handle: p.Handle}
	case Saved:
		return t.Saved
	}
	return t.Current
}

// refs is the Space of a FileWalk.
type refs struct{}

func (refs) Handle(h []byte) Ref            { return Ref{Handle: h} }
func (refs) Root() Ref                      { return Ref{} }
func (refs) Public() Ref                    { return Ref{} }
func (refs) Entry(dir Ref, name []byte) Ref { return Ref{Dir: dir.Handle, Name: name} }
func (refs) Parent(Ref) Ref                 { return Ref{} }
func (refs) Attributes(Ref) Ref             { return Ref{} }
