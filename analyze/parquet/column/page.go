package column

import (
	"bytes"
	"hash/crc32"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// column is a column of any type.
type column interface {
	base() *chunk
	// turn makes what was added since the last page the page that is written next. What page has left empty is the room of what is
	// added from now on. page and the methods that add something may then be called at the same time.
	turn()
	// page writes the page that has turned, and empties it.
	page(p *pager)
	// dictionary puts the dictionary into p.data and returns how many values it has; 0: there is none.
	dictionary(p *pager) int
	// limits are the least and the greatest value of the row group.
	limits() bounds
	reset()
}

// bounds are the least and the greatest value; nil if there is none.
type bounds struct{ lo, hi []byte }

// maxBound is how many bytes of a bound an index of pages has.
const maxBound = 64

// short cuts texts: what is left of the least one is less, what is made of the greatest one greater.
func (b bounds) short() bounds {
	if len(b.lo) > maxBound {
		b.lo = whole(b.lo[:maxBound])
	}
	if len(b.hi) > maxBound {
		// Other characters than ASCII stay as they are: their successor may be no character.
		for n := maxBound; n > 0; n-- {
			if c := b.hi[n-1]; c < '~' {
				b.hi = append(bytes.Clone(b.hi[:n-1]), c+1)
				break
			}
		}
	}
	return bounds{append([]byte{}, b.lo...), append([]byte{}, b.hi...)}
}

// whole cuts off a character that is not complete.
func whole(b []byte) []byte {
	for n := len(b); n > 0 && n > len(b)-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n-1]) {
			if utf8.FullRune(b[n-1:]) {
				return b
			}
			return b[:n-1]
		}
	}
	return b
}

// chunk is what a column has written of a row group.
type chunk struct {
	*leaf
	levels  *Levels // nil: each row has one value
	out     []byte  // encoded pages
	values  int64   // nulls included
	nulls   int64
	plain   int64 // bytes, not compressed
	rows    int64
	index   format.ColumnIndex
	pages   []format.PageLocation
	methods [16]int32 // pages by encoding
}

func (c *chunk) base() *chunk { return c }

// pager has what encoding a page needs, for all columns.
type pager struct {
	codec  Codec
	rows   int // of the page
	data   []byte
	packed []byte // until the next page
	ints   runs[int64]
	texts  runs[int32]
	levels [9]runs[byte]     // by their bits
	small  map[string][]byte // pages of few bytes, packed
	large  [4]packedPage     // the last others
	turn   int
	long   []byte // a longer one, packed
	head   bytes.Buffer
	header format.PageHeader
	thrift thrift.CompactProtocol
	enc    thrift.Encoder
}

// Codec compresses.
type Codec interface {
	Encode(dst, src []byte) ([]byte, error)
	CompressionCodec() format.CompressionCodec
}

func (p *pager) init(c Codec) {
	p.codec = c
	p.enc.Reset(p.thrift.NewWriter(&p.head))
	p.ints.how = func(dst []byte, list []int64) []byte {
		dst, _ = packed.EncodeInt64(dst, list)
		return dst
	}
	for bits := range p.levels {
		p.levels[bits].how = func(dst, list []byte) []byte { return encodeLevels(dst, list, byte(1<<bits-1)) }
	}
	p.texts.how = func(dst []byte, list []int32) []byte {
		dst, _ = indexes.EncodeInt32(dst, list)
		return dst
	}
}

// write appends a page with the values in p.data.
func (c *chunk) write(p *pager, how format.Encoding, values int, b bounds) {
	var reps, defs []byte
	n, nulls := values, 0
	if l := c.levels; l != nil {
		l.encode(p)
		reps, defs, n, nulls = l.reps, l.defs, l.turned.def.len(), l.turned.nulls
	}
	if values != n-nulls {
		panic("column: the levels of " + c.path[0] + " are not those of its values")
	}
	p.compress()
	h := &p.header
	*h = format.PageHeader{Type: format.DataPageV2}
	h.DataPageHeaderV2.Valid = true
	h.DataPageHeaderV2.V = format.DataPageHeaderV2{
		NumValues: int32(n), NumNulls: int32(nulls), NumRows: int32(p.rows), Encoding: how,
		DefinitionLevelsByteLength: int32(len(defs)), RepetitionLevelsByteLength: int32(len(reps)), IsCompressed: thrift.New(true),
	}
	start := len(c.out)
	c.out = p.append(c.out, reps, defs)
	c.plain += int64(p.head.Len() + len(reps) + len(defs) + len(p.data))
	c.pages = append(c.pages, format.PageLocation{Offset: int64(start), CompressedPageSize: int32(len(c.out) - start), FirstRowIndex: c.rows})
	c.rows += int64(p.rows)
	c.values += int64(n)
	c.nulls += int64(nulls)
	c.methods[how]++
	x := &c.index
	x.NullPages, x.NullCounts = append(x.NullPages, values == 0), append(x.NullCounts, int64(nulls))
	x.MinValues, x.MaxValues = append(x.MinValues, b.lo), append(x.MaxValues, b.hi)
}

// packedPage is a page with what became of it.
type packedPage struct{ data, packed []byte }

const (
	smallPage = 64      // bytes
	maxSmall  = 256     // pages
	largePage = 1 << 17 // bytes; longer ones are not kept
)

// compress compresses p.data. Equal pages are compressed once: those of columns with one value, which are small, and columns
// that say the same in other words, such as a procedure and its operation.
func (p *pager) compress() {
	if len(p.data) <= smallPage {
		b, ok := p.small[string(p.data)]
		if !ok {
			if p.small == nil || len(p.small) >= maxSmall {
				p.small = make(map[string][]byte)
			}
			b = p.encode(nil)
			p.small[string(p.data)] = b
		}
		p.packed = b
		return
	}
	if len(p.data) > largePage {
		p.long = p.encode(keep(p.long))
		p.packed = p.long
		return
	}
	for i := range p.large {
		if x := &p.large[i]; bytes.Equal(x.data, p.data) {
			p.packed = x.packed
			return
		}
	}
	x := &p.large[p.turn]
	p.turn = (p.turn + 1) % len(p.large)
	x.data, x.packed = append(x.data[:0], p.data...), p.encode(x.packed)
	p.packed = x.packed
}

func (p *pager) encode(dst []byte) []byte {
	dst, err := p.codec.Encode(dst, p.data)
	if err != nil {
		panic(err) // memory has no errors
	}
	return dst
}

// append appends the page with p.header to b.
func (p *pager) append(b, reps, defs []byte) []byte {
	h := &p.header
	h.UncompressedPageSize = int32(len(reps) + len(defs) + len(p.data))
	h.CompressedPageSize = int32(len(reps) + len(defs) + len(p.packed))
	sum := crc32.ChecksumIEEE(reps)
	sum = crc32.Update(sum, crc32.IEEETable, defs)
	h.CRC = int32(crc32.Update(sum, crc32.IEEETable, p.packed))
	p.head.Reset()
	if err := p.enc.Encode(h); err != nil {
		panic(err)
	}
	b = append(b, p.head.Bytes()...)
	b = append(b, reps...)
	b = append(b, defs...)
	return append(b, p.packed...)
}

func (c *chunk) clear() {
	if cap(c.out) > maxOut {
		c.out = nil
	}
	c.out, c.values, c.nulls, c.plain, c.rows = c.out[:0], 0, 0, 0, 0
	c.pages, c.methods = nil, [16]int32{} // the footer has the pages
	c.index = format.ColumnIndex{}
}

// maxOut is how many encoded bytes of a column there is room kept for.
const maxOut = 1 << 20
