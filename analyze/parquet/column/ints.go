package column

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/plain"
	"github.com/parquet-go/parquet-go/format"
)

// Ints is a column of INT64; of UINT_64 it takes the same bits.
type Ints struct {
	chunk
	ints
	turned ints // see column.turn
	delta  bool
	flip   int64 // makes signed comparison that of the column
	lo, hi int64 // of the row group, flipped
	some   bool

	prevLo, prevHi int64 // of the page before
	falls, rises   bool  // from page to page
}

// ints is the values of a page.
type ints struct {
	v     []int64
	equal run[int64] // instead of v: all values of the page so far
}

func (c *Ints) turn() { c.ints, c.turned = c.turned, c.ints }

// Add appends a value.
func (c *Ints) Add(v int64) {
	if len(c.v) > 0 { // most of those that are not repeated
		c.v = append(c.v, v)
		return
	}
	c.Repeat(v, 1)
}

// Repeat appends a value the given number of times.
func (c *Ints) Repeat(v int64, times int) {
	if len(c.v) > 0 || !c.equal.add(v, times) {
		c.v = appendTimes(c.equal.spill(c.v), v, times)
	}
}

// Delta lets differences of consecutive values be stored: for counters.
func (c *Ints) Delta() *Ints {
	c.delta = true
	return c
}

var (
	packed delta.BinaryPackedEncoding
	asIs   plain.Encoding
)

func (c *Ints) page(p *pager) {
	x := &c.turned
	n := len(x.v) + x.equal.n
	if n == 0 {
		p.data = p.data[:0]
		c.write(p, format.Plain, 0, bounds{})
		return
	}
	lo, hi := x.equal.v^c.flip, x.equal.v^c.flip
	if len(x.v) > 0 {
		lo, hi = x.v[0]^c.flip, x.v[0]^c.flip
		for _, v := range x.v {
			lo, hi = min(lo, v^c.flip), max(hi, v^c.flip)
		}
	}
	if !c.some {
		c.some, c.lo, c.hi = true, lo, hi
	} else {
		c.rises = c.rises || lo > c.prevLo || hi > c.prevHi
		c.falls = c.falls || lo < c.prevLo || hi < c.prevHi
	}
	c.lo, c.hi, c.prevLo, c.prevHi = min(c.lo, lo), max(c.hi, hi), lo, hi
	how := format.DeltaBinaryPacked
	switch {
	case x.equal.n > 0: // takes a few bytes
		p.data = append(p.data[:0], p.ints.encode(x.equal)...)
	case c.delta:
		p.data, _ = packed.EncodeInt64(p.data, x.v)
	default:
		how = format.Plain
		p.data, _ = asIs.EncodeInt64(p.data, x.v)
	}
	c.write(p, how, n, bounds{c.bytes(lo), c.bytes(hi)})
	x.v, x.equal.n = keep(x.v), 0
	switch {
	case !c.falls:
		c.index.BoundaryOrder = format.Ascending
	case !c.rises:
		c.index.BoundaryOrder = format.Descending
	default:
		c.index.BoundaryOrder = format.Unordered
	}
}

func (c *Ints) bytes(flipped int64) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(flipped^c.flip))
}

func (c *Ints) dictionary(*pager) int { return 0 }

func (c *Ints) limits() bounds {
	if !c.some {
		return bounds{}
	}
	return bounds{c.bytes(c.lo), c.bytes(c.hi)}
}

func (c *Ints) reset() { c.v, c.equal.n, c.some, c.falls, c.rises = c.v[:0], 0, false, false, false }
