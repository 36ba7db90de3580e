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
	both
	turned both // see column.turn

	encoded    bool // what has turned
	reps, defs []byte
}

// both is the levels of a page.
type both struct {
	rep, def levels
	nulls    int
}

// turn makes the levels added since the last page those of the page that is written next: see column.turn.
func (l *Levels) turn() { l.both, l.turned = l.turned, l.both }

// Value says that a value of each column follows.
func (l *Levels) Value(rep byte) {
	if l.maxRep > 0 {
		l.rep.add(rep)
	}
	l.def.add(l.maxDef)
}

// Null says that there is no value: only the first def steps on the way to it are there.
func (l *Levels) Null(rep, def byte) {
	if l.maxRep > 0 {
		l.rep.add(rep)
	}
	l.def.add(def)
	l.nulls++
}

// List says that a list of the given number of values follows, which is not in another list: Value(0), then Value(1).
func (l *Levels) List(values int) {
	if len(l.rep.list) > 0 && values <= len(listReps) {
		l.rep.list = append(l.rep.list, listReps[:values]...)
	} else {
		l.rep.add(0)
		l.rep.repeat(1, values-1)
	}
	l.def.repeat(l.maxDef, values)
}

// listReps is the repetition levels of a list, as long as most are.
var listReps = [16]byte{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}

// Values is Value(0) the given number of times.
func (l *Levels) Values(times int) {
	if l.maxRep > 0 {
		l.rep.repeat(0, times)
	}
	l.def.repeat(l.maxDef, times)
}

// Nulls is Null(0, 0) the given number of times.
func (l *Levels) Nulls(times int) {
	if l.maxRep > 0 {
		l.rep.repeat(0, times)
	}
	l.def.repeat(0, times)
	l.nulls += times
}

// levels holds the repetition levels or the definition levels of one page.
type levels struct {
	list    []byte
	equal   run[byte] // instead of list: all levels of the page so far
	encoded []byte
}

func (x *levels) add(level byte) {
	if len(x.list) > 0 {
		x.list = append(x.list, level)
		return
	}
	x.repeat(level, 1)
}

func (x *levels) repeat(level byte, times int) {
	if len(x.list) > 0 || !x.equal.add(level, times) {
		x.list = appendTimes(x.equal.spill(x.list), level, times)
	}
}

func (x *levels) len() int { return len(x.list) + x.equal.n }

func (x *levels) encode(p *pager, most byte) []byte {
	if x.equal.n > 0 {
		return p.levels[bits.Len8(most)].encode(x.equal)
	}
	x.encoded = encodeLevels(x.encoded, x.list, most)
	return x.encoded
}

func (x *levels) next() { x.list, x.equal.n = keep(x.list), 0 }

// encode encodes the levels of a page once, for all columns that share them.
func (l *Levels) encode(p *pager) {
	if l.encoded {
		return
	}
	l.encoded = true
	l.reps, l.defs = l.turned.rep.encode(p, l.maxRep), l.turned.def.encode(p, l.maxDef)
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

// next forgets what has been encoded.
func (l *Levels) next() {
	l.turned.next()
	l.encoded = false
}

func (x *both) next() {
	x.rep.next()
	x.def.next()
	x.nulls = 0
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
