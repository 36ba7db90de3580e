package ops

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Space maps file handles to files in the representation that its user needs.
// The zero F stands for no file.
type Space[F any] interface {
	// Handle returns the file of a handle, which aliases the message.
	Handle(h []byte) F
	Root() F
	Public() F
	// Entry returns the file of a name in a directory.
	Entry(dir F, name []byte) F
	Parent(f F) F
	// Attributes returns the directory of a file's named attributes.
	Attributes(f F) F
}

// Walk follows the current and the saved file handle through a COMPOUND (RFC 8881,
// section 16.2.3.1). It assumes that each operation succeeds, since one that fails is the
// last. A zero Walk with a Space stands before the first operation.
type Walk[F any, S Space[F]] struct {
	Space          S
	Current, Saved F
}

// Step applies an operation with these arguments to the file handles. An unknown one
// leaves none.
func (w *Walk[F, S]) Step(number uint32, args xdr.Message) {
	var to F
	e := Operation(number)
	if e == nil {
		w.Current, w.Saved = to, to
		return
	}
	switch m := args.(type) {
	case *nfs4.PUTFH4args:
		to = w.Space.Handle(m.Object)
	case *nfs4.LOOKUP4args:
		to = w.Space.Entry(w.Current, m.Objname)
	case *nfs4.CREATE4args:
		to = w.Space.Entry(w.Current, m.Objname)
	case *nfs4.OPEN4args:
		if name, ok := OpenName(m); ok {
			to = w.Space.Entry(w.Current, name)
		} else {
			to = w.Current
		}
	}
	w.Go(e.Effect, to)
}

// Go is Step for users who have the arguments in another form. Puts and Descends lead to
// the file to, which other effects ignore. An OPEN without a name leads to the current file.
func (w *Walk[F, S]) Go(e Effect, to F) {
	switch e {
	case Keeps:
	case Puts, Descends:
		w.Current = to
	case PutsRoot:
		w.Current = w.Space.Root()
	case PutsPublic:
		w.Current = w.Space.Public()
	case Ascends:
		w.Current = w.Space.Parent(w.Current)
	case EntersAttributes:
		w.Current = w.Space.Attributes(w.Current)
	case Saves:
		w.Saved = w.Current
	case Restores:
		w.Current = w.Saved
	default: // Consumes
		var none F
		w.Current = none
	}
}
