package ops

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// Space tells what a file handle stands for, in whatever way its user sees files.
// The zero F is that of no file.
type Space[F any] interface {
	// Handle is the file of a handle, which aliases the message.
	Handle(h []byte) F
	Root() F
	Public() F
	// Entry is the file of a name in a directory.
	Entry(dir F, name []byte) F
	Parent(f F) F
	// Attributes is the directory of a file's named attributes.
	Attributes(f F) F
}

// Walk follows the current and the saved file handle through a COMPOUND (RFC 8881,
// section 16.2.3.1), each operation taken to succeed: one that fails is the last.
// The zero Walk with a Space is before the first operation.
type Walk[F any, S Space[F]] struct {
	Space          S
	Current, Saved F
}

// Step does what an operation does to the file handles. What is not known leaves
// none.
func (w *Walk[F, S]) Step(op *nfs4.Op) {
	var none F
	e := Operation(op.Number)
	if e == nil {
		w.Current, w.Saved = none, none
		return
	}
	switch e.Effect {
	case Keeps:
	case Puts:
		w.Current = none
		if m, ok := op.Body.(*nfs4.PUTFH4args); ok {
			w.Current = w.Space.Handle(m.Object)
		}
	case PutsRoot:
		w.Current = w.Space.Root()
	case PutsPublic:
		w.Current = w.Space.Public()
	case Descends:
		w.descend(op)
	case Ascends:
		w.Current = w.Space.Parent(w.Current)
	case EntersAttributes:
		w.Current = w.Space.Attributes(w.Current)
	case Saves:
		w.Saved = w.Current
	case Restores:
		w.Current = w.Saved
	default: // Consumes
		w.Current = none
	}
}

func (w *Walk[F, S]) descend(op *nfs4.Op) {
	switch m := op.Body.(type) {
	case *nfs4.LOOKUP4args:
		w.Current = w.Space.Entry(w.Current, m.Objname)
	case *nfs4.CREATE4args:
		w.Current = w.Space.Entry(w.Current, m.Objname)
	case *nfs4.OPEN4args:
		if name, ok := OpenName(m); ok {
			w.Current = w.Space.Entry(w.Current, name)
		}
	default:
		var none F
		w.Current = none
	}
}
