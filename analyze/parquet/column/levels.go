package column

import (
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/rle"
)

// Levels say where the values of columns belong that may be absent or repeated. Columns that are always
// absent and repeated together, such as the members of a structure in a list, share one Levels: then each
// of them has one value for each Value.
//
// The repetition level of the first value of a row is 0; of another value it says which list it continues.
// The definition level says how many of the optional and repeated steps on the way to the value are there:
// all of them for a value.
type Levels struct {
	maxRep, maxDef byte
	known          bool // the maxima are known: a column has been bound
	rep, def       []byte
	nulls          int

	encoded    bool // for the current page
	reps, defs []byte
}

// Value says that a value of each column follows.
func (l *Levels) Value(rep byte) {
	if l.maxRep > 0 {
		l.rep = append(l.rep, rep)
	}
	l.def = append(l.def, l.maxDef)
}

// Null says that there is no value: only the first def steps on the way to it are there.
func (l *Levels) Null(rep, def byte) {
	if l.maxRep > 0 {
		l.rep = append(l.rep, rep)
	}
	l.def = append(l.def, def)
	l.nulls++
}

// encode encodes the levels of a page once, for all columns that share them.
func (l *Levels) encode() {
	if l.encoded {
		return
	}
	l.encoded = true
	l.reps = encodeLevels(l.reps, l.rep, l.maxRep)
	l.defs = encodeLevels(l.defs, l.def, l.maxDef)
}

func encodeLevels(dst, levels []byte, most byte) []byte {
	if most == 0 {
		return dst[:0]
	}
	e := rle.Encoding{BitWidth: bits.Len8(most)}
	dst, err := e.EncodeLevels(dst, levels)
	if err != nil {
		panic(err) // no level exceeds the maximum
	}
	return dst
}

// next begins another page.
func (l *Levels) next() {
	l.rep, l.def, l.nulls, l.encoded = keep(l.rep), keep(l.def), 0, false
}

// keep empties a slice for reuse. What an unusual page made grow is given back.
func keep[T any](s []T) []T {
	if cap(s) > maxKept {
		return nil
	}
	return s[:0]
}

// maxKept is the number of values of a page, or bytes of it, that are kept room for.
const maxKept = 1 << 16
