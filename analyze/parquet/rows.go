package parquet

import (
	"io"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/parquet/column"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// rows are the columns of a file of transactions.
type rows struct {
	all []*attribute
	// numbers and others are read for each row, runs are the same for most rows, by their scope.
	numbers, others []*attribute
	runs            [fields.OfBare + 1]run

	// What is written by hand, since its values are known by where they were written last: see Mark.
	procedure, operation, group, status *column.Texts
	operations                          *operations
	handle, name, path                  *attribute
}

// newRows makes the file and its columns.
func newRows(to io.Writer, opt column.Options) (*column.File, *rows) {
	file := column.New(to, schema(), opt)
	r := &rows{}
	byHand := map[string]*attribute{
		"procedure": nil, "operation": nil, "operation_group": nil, "status": nil, "operations": nil, "file.filehandle": nil, "file.name": nil, "file.path": nil,
	}
	table := fields.All()
	in := "" // the list whose members are its columns
	for i := range table {
		f := &table[i]
		if !f.In(fields.Parquet) || in != "" && strings.HasPrefix(f.Name, in) {
			continue
		}
		in = ""
		_, isList := lists[f.Name]
		if isList {
			in = f.Name + "."
		} else if hasMembers(f) {
			continue
		}
		a := newAttribute(file, f)
		r.all = append(r.all, a)
		switch _, is := byHand[f.Name]; {
		case is:
			byHand[f.Name] = a
		case f.Of != fields.Each && f.Of != fields.OfKind:
			r.runs[f.Of].list = append(r.runs[f.Of].list, a)
		case a.ints != nil && f.Uint != nil:
			r.numbers = append(r.numbers, a)
		default:
			r.others = append(r.others, a)
		}
	}
	r.procedure, r.operation, r.group = byHand["procedure"].texts, byHand["operation"].texts, byHand["operation_group"].texts
	r.status, r.operations = byHand["status"].texts, byHand["operations"].list.(*operations)
	r.handle, r.name, r.path = byHand["file.filehandle"], byHand["file.name"], byHand["file.path"]
	file.Ready()
	return file, r
}

// attribute is an attribute and its column.
type attribute struct {
	*fields.Field
	levels  *column.Levels // nil: there is always a value
	present bool           // the last rows have a value
	rows    int            // how many, not yet passed to the levels

	ints  *column.Ints
	texts *column.Texts
	bools *column.Bools
	list  list
}

func newAttribute(file *column.File, f *fields.Field) *attribute {
	a := &attribute{Field: f}
	if l, is := lists[f.Name]; is {
		a.list = l.columns(file, f.Name)
		return a
	} else if f.Several {
		a.list = newTexts(file, f)
		return a
	}
	if !always(f) {
		a.levels = file.Levels()
	}
	switch {
	case f.Type == fields.Boolean:
		a.bools = file.Bools(f.Name, a.levels)
	case isNumber(f):
		a.ints = file.Ints(f.Name, a.levels)
		if f.Of == fields.Each && (f.Type == fields.Number || f.Type == fields.Time) { // numbers that go up
			a.ints.Delta()
		}
	default:
		a.texts = file.Texts(f.Name, a.levels)
		if f.Type == fields.Bytes {
			a.texts.Hex()
		}
	}
	return a
}

// has says whether the next rows have a value.
func (a *attribute) has(present bool, times int) {
	if present != a.present {
		a.settle()
		a.present = present
	}
	a.rows += times
}

// settle tells the levels.
func (a *attribute) settle() {
	switch {
	case a.levels == nil || a.rows == 0:
	case a.present && a.rows == 1:
		a.levels.Value(0)
	case a.present:
		a.levels.Values(a.rows)
	case a.rows == 1:
		a.levels.Null(0, 0)
	default:
		a.levels.Nulls(a.rows)
	}
	a.rows = 0
}

// repeat appends a value several times. Lists are empty.
func (a *attribute) repeat(x *value, times int) {
	if a.list != nil {
		a.list.Nulls(times)
		return
	}
	a.has(x.is, times)
	switch {
	case !x.is && a.levels != nil:
	case a.ints != nil:
		a.ints.Repeat(x.number, times)
	case a.texts != nil:
		a.texts.Repeat(x.text, times)
	default:
		for range times {
			a.bools.Add(x.number != 0)
		}
	}
}

// bytes appends text whose memory may be used again.
func (a *attribute) bytes(b []byte) {
	a.has(true, 1)
	a.texts.AddBytes(b)
}

// run is attributes that have the same values in most rows, one after the other. Such rows are counted, and appended together: before
// another row, and before a page ends.
type run struct {
	list   []*attribute
	values []value // what the rows have that are counted
	rows   int
}

func (r *run) flush() {
	if r.rows == 0 {
		return
	}
	for i, a := range r.list {
		a.repeat(&r.values[i], r.rows)
	}
	r.rows = 0
}

// begin begins a run with the values of a transaction.
func (e *encoder) begin(r *run, v *rpc.View) {
	r.flush()
	r.values = e.valuesOf(r.list, v)
}

func (e *encoder) valuesOf(list []*attribute, v *rpc.View) []value {
	values := make([]value, len(list))
	for i, a := range list {
		if a.list == nil {
			values[i] = *e.read(a, v)
			values[i].keep()
		}
	}
	return values
}

// own appends a row that has values of its own.
func (e *encoder) own(r *run, v *rpc.View) {
	r.flush()
	for _, a := range r.list {
		e.append(a, v)
	}
}

// append appends the value of a transaction.
func (e *encoder) append(a *attribute, v *rpc.View) {
	switch {
	case a.list != nil:
		a.list.append(e, v)
	case a.Bytes != nil:
		if b := a.Bytes(&e.reader, v); b == nil {
			a.has(false, 1)
		} else if a.Type == fields.Bytes {
			e.size += 2 * len(b)
			a.bytes(b)
		} else {
			e.addName(a, b)
		}
	default:
		x := e.read(a, v)
		x.keep()
		e.size += len(x.text)
		a.repeat(x, 1)
	}
}

// flush appends the rows that were only counted.
func (e *encoder) flush() {
	e.countAlike()
	for i := range e.runs {
		e.runs[i].flush()
	}
	for _, a := range e.all {
		a.settle()
	}
	e.operations.settle()
}

// drop forgets them.
func (e *encoder) drop() {
	e.rowsAlike, e.operations.without = 0, 0
	for i := range e.runs {
		e.runs[i].rows = 0
	}
	for _, a := range e.all {
		a.rows = 0
	}
}

// read reads the value of an attribute. It holds until the next one is read.
func (e *encoder) read(a *attribute, v *rpc.View) *value {
	x := &e.value
	*x = value{e: e, of: a.Field, list: x.list[:0]}
	a.Read(&e.reader, v)
	return x
}
