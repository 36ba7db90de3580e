package parquet

import (
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/parquet/column"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// encoder appends one transaction after the other to the columns. Rows with the same values are counted for each run of attributes.
type encoder struct {
	*rows
	addrs  link.AddrTexts
	listB  []byte
	text   []byte // a name
	joined []byte // a path
	size   int    // bytes of the row, about
	reader fields.Reader
	value  value // the one that is read

	parties   [64]party
	party     *party // that of the run
	framing   framing
	alike     alike // the last row
	rowsAlike int   // rows like it that the runs do not count yet

	places    [rpc.Places]placed
	kinds     compound.Kinds
	compounds [compound.Most]operated
}

// maxKept is how many bytes of a name are kept room for: what one hostile message made grow is
// given back.
const maxKept = 1 << 14

// encode appends a row and returns how many bytes it takes uncompressed, about.
func (e *encoder) encode(v *rpc.View) int {
	const fixed = 256 // what every row takes
	e.size = fixed
	e.reader.Values = &e.value
	e.reader.Reset()
	e.parted(v)
	e.called(v)
	e.status.Add(v.Status())
	e.framed(v)
	e.common(v)
	for _, a := range e.numbers {
		n, ok := a.Uint(&e.reader, v)
		if a.levels != nil {
			if a.has(ok, 1); !ok {
				continue
			}
		}
		a.ints.Add(int64(n))
	}
	for _, a := range e.others {
		e.append(a, v)
	}
	e.file(v)
	return e.size
}

// operated is a kind of calls, and where what they consist of was written.
type operated struct {
	stamp                       uint64 // of the compound.Kind
	procedure, operation, group column.Mark
	names, statuses             column.Marks
}

// called appends what was called.
func (e *encoder) called(v *rpc.View) {
	kind := e.kinds.Of(v)
	if kind == nil {
		e.procedure.Add(v.ProcedureName())
		e.operation.AddBytes(e.listing(v))
		e.group.Add(v.OperationGroup())
		if len(v.Steps()) > 0 {
			e.operations.append(e, v)
		} else {
			e.operations.Nulls(1)
		}
		return
	}
	k := &e.compounds[kind.Slot]
	if k.stamp != kind.Stamp {
		*k = operated{stamp: kind.Stamp, names: k.names, statuses: k.statuses} // for their room
		k.names.Forget()
		k.statuses.Forget()
	}
	if !e.procedure.Again(&k.procedure) {
		e.procedure.AddTextMarked(v.ProcedureName(), &k.procedure)
	}
	if !e.operation.Again(&k.operation) {
		e.operation.AddMarked(e.listing(v), &k.operation)
	}
	if !e.group.Again(&k.group) {
		e.group.AddTextMarked(v.OperationGroup(), &k.group)
	}
	list, o := v.Steps(), e.operations
	if len(list) == 0 {
		o.Nulls(1)
		return
	}
	if !kind.Ended {
		o.append(e, v)
		return
	}
	e.size += listSize * len(list)
	o.settle()
	o.List(len(list))
	if !o.op.AllAgain(&k.names) {
		k.names.Forget()
		for i := range list {
			o.op.AddNext(list[i].Name, &k.names)
		}
	}
	o.statuses.List(len(list))
	if !o.status.AllAgain(&k.statuses) {
		k.statuses.Forget()
		for i := range list {
			o.status.AddNext(list[i].Status, &k.statuses)
		}
	}
}

func (e *encoder) file(v *rpc.View) {
	f := v.File()
	if f == nil {
		f = &noFile
	}
	if f.Handle == nil {
		e.handle.has(false, 1)
	} else {
		e.handle.has(true, 1)
		e.size += 2 * len(f.Handle)
	}
	e.fileAt(v, f, v.Names.Of(v.Tx).Place(f.Handle))
	if cap(e.joined) > maxKept {
		e.joined = nil
	}
	if cap(e.text) > maxKept {
		e.text = nil
	}
}

var noFile rpc.File

// placed is a file that transactions were about lately, and where its handle and its path were written.
type placed struct {
	stamp        uint64 // of the rpc.Place
	plain        bool   // the path is ASCII
	handle, path column.Mark
}

// fileAt appends the handle, the name and the path of a file. That it has a handle has been said.
func (e *encoder) fileAt(v *rpc.View, f *rpc.File, p *rpc.Place) {
	if p == nil || f.Handle == nil || f.Unnamed {
		if f.Handle != nil {
			e.handle.texts.AddBytes(f.Handle)
		}
		e.addName(e.name, f.Name)
		e.addName(e.path, e.reader.Path(v))
		return
	}
	k := &e.places[uint(p.Slot)%rpc.Places]
	if k.stamp != p.Stamp {
		*k = placed{stamp: p.Stamp, plain: printable.Plain(p.Path)}
	}
	if !e.handle.texts.Again(&k.handle) {
		e.handle.texts.AddMarked(f.Handle, &k.handle)
	}
	if f.Name != nil {
		e.addName(e.name, f.Name)
		e.joined = append(append(e.joined[:0], p.Path...), '/')
		if len(p.Path) == 0 {
			e.joined = e.joined[:0]
		}
		e.joined = append(e.joined, f.Name...)
		if len(e.joined) == 0 {
			e.path.has(false, 1)
		} else {
			e.addName(e.path, e.joined)
		}
		return
	}
	e.name.has(false, 1)
	switch {
	case len(p.Path) == 0:
		e.path.has(false, 1)
	case !k.plain:
		e.addName(e.path, p.Path)
	default:
		e.size += len(p.Path)
		e.path.has(true, 1)
		if !e.path.texts.Again(&k.path) {
			e.path.texts.AddMarked(p.Path, &k.path)
		}
	}
}

// addName appends a name; null if there is none.
func (e *encoder) addName(a *attribute, b []byte) {
	if b == nil {
		a.has(false, 1)
		return
	}
	e.size += len(b)
	a.bytes(e.valid(b))
}

// valid returns a name in which each byte that is no UTF-8 is U+FFFD.
func (e *encoder) valid(b []byte) []byte {
	if printable.Plain(b) || utf8.Valid(b) {
		return b
	}
	t := e.text[:0]
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			t = utf8.AppendRune(t, utf8.RuneError)
		} else {
			t = append(t, b[:n]...)
		}
		b = b[n:]
	}
	e.text = t
	return t
}

// listing is the operation as listings show it, until the next call.
func (e *encoder) listing(v *rpc.View) []byte {
	e.listB = v.AppendOperation(e.listB[:0])
	return e.listB
}
