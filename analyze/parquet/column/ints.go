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
	v      []int64
	delta  bool
	flip   int64 // makes signed comparison that of the column
	lo, hi int64 // of the row group, flipped
	some   bool

	prevLo, prevHi int64 // of the page before
	falls, rises   bool  // from page to page
}

// Add appends a value.
func (c *Ints) Add(v int64) { c.v = append(c.v, v) }

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
	if len(c.v) == 0 {
		p.data = p.data[:0]
		c.write(p, format.Plain, 0, bounds{})
		return
	}
	lo, hi := c.v[0]^c.flip, c.v[0]^c.flip
	if !same(c.v) {
		for _, v := range c.v {
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
	how := format.Plain
	if c.delta || lo == hi { // those of one value take a few bytes
		how = format.DeltaBinaryPacked
		p.data, _ = packed.EncodeInt64(p.data, c.v)
	} else {
		p.data, _ = asIs.EncodeInt64(p.data, c.v)
	}
	c.write(p, how, len(c.v), bounds{c.bytes(lo), c.bytes(hi)})
	c.v = keep(c.v)
	switch {
	case !c.falls:
		c.index.BoundaryOrder = format.Ascending
	case !c.rises:
		c.index.BoundaryOrder = format.Descending
	default:
		c.index.BoundaryOrder = format.Unordered
	}
}

// same reports whether all values are equal, as those of most columns are.
func same(v []int64) bool {
	first := v[0]
	for ; len(v) >= 4; v = v[4:] {
		if (v[0]^first)|(v[1]^first)|(v[2]^first)|(v[3]^first) != 0 {
			return false
		}
	}
	for _, x := range v {
		if x != first {
			return false
		}
	}
	return true
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

func (c *Ints) reset() { c.v, c.some, c.falls, c.rises = c.v[:0], false, false, false }
