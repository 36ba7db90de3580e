package column

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Options of a File. The zero value is a good choice.
type Options struct {
	// Metadata is the key-value metadata.
	Metadata map[string]string
	// CreatedBy names the program.
	CreatedBy string
	// Rows and Bytes end a row group, which is in memory until then: 65536, and 12 MB uncompressed.
	Rows, Bytes int
	// PageRows and PageBytes end the pages of all columns: 8192, and 1 MB uncompressed.
	PageRows, PageBytes int
	// Dictionary is how many bytes of distinct strings a column of a row group may have, about; beyond, they
	// are written as they are: 1 MB.
	Dictionary int
	// Codec compresses pages; it may be shared.
	Codec Codec
	// Concurrent lets a page be encoded and compressed while rows are added to the next one: in a goroutine of its own, which ends
	// with the page. The values of two pages are then in memory.
	Concurrent bool
}

func (o *Options) defaults() {
	or := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	or(&o.Rows, 1<<16)
	or(&o.Bytes, 12<<20)
	or(&o.PageRows, 8192)
	or(&o.PageBytes, 1<<20)
	or(&o.Dictionary, 1<<20)
	if o.Codec == nil {
		o.Codec = &zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}
	}
}

// File writes one file. It is not safe for concurrent use.
type File struct {
	to      io.Writer
	at      int64
	opt     Options
	schema  *Schema
	columns []column
	levels  []*Levels
	page    pager

	before func() // of each page

	pageRows, pageBytes, groupRows, groupBytes int

	encoding sync.WaitGroup // of a page

	rows    int64
	groups  []format.RowGroup
	indexes [][]format.ColumnIndex
	offsets [][]format.OffsetIndex
	err     error
}

// New makes a File. Each column of the schema must be asked for before the first row.
func New(to io.Writer, s *Schema, opt Options) *File {
	opt.defaults()
	f := &File{to: to, opt: opt, schema: s, columns: make([]column, len(s.leaves))}
	f.page.init(opt.Codec)
	return f
}

// Concurrent is what Options say.
func (f *File) Concurrent() bool { return f.opt.Concurrent }

// BeforePage has a function called before a page ends. It may append values of rows that have ended.
func (f *File) BeforePage(do func()) { f.before = do }

// Levels makes the levels of columns that are absent and repeated together.
func (f *File) Levels() *Levels {
	l := &Levels{}
	f.levels = append(f.levels, l)
	return l
}

// Ints is the INT64 column with that path: its names with dots between. l is nil if every row has one value.
func (f *File) Ints(path string, l *Levels) *Ints {
	leaf, i := f.schema.leaf(path, format.Int64)
	c := &Ints{chunk: chunk{leaf: leaf}}
	if leaf.unsigned {
		c.flip = -1 << 63
	}
	f.bind(c, i, l)
	return c
}

// Texts is the STRING column with that path.
func (f *File) Texts(path string, l *Levels) *Texts {
	leaf, i := f.schema.leaf(path, format.ByteArray)
	c := &Texts{chunk: chunk{leaf: leaf}, most: f.opt.Dictionary}
	f.bind(c, i, l)
	return c
}

// Bools is the BOOLEAN column with that path.
func (f *File) Bools(path string, l *Levels) *Bools {
	leaf, i := f.schema.leaf(path, format.Boolean)
	c := &Bools{chunk: chunk{leaf: leaf}}
	f.bind(c, i, l)
	return c
}

func (f *File) bind(c column, i int, l *Levels) {
	b := c.base()
	switch {
	case f.columns[i] != nil:
		panic(fmt.Sprint("column: asked for twice: ", b.path))
	case l == nil && b.maxDef > 0, l != nil && b.maxDef == 0:
		panic(fmt.Sprint("column: levels of ", b.path))
	case l != nil && !l.known:
		l.known, l.maxRep, l.maxDef = true, b.maxRep, b.maxDef
	case l != nil && (l.maxRep != b.maxRep || l.maxDef != b.maxDef):
		panic(fmt.Sprint("column: other levels than ", b.path))
	}
	b.levels = l
	f.columns[i] = c
}

// Ready panics if a column of the schema was not asked for.
func (f *File) Ready() {
	for i, c := range f.columns {
		if c == nil {
			panic(fmt.Sprint("column: nobody writes ", f.schema.leaves[i].path))
		}
	}
}

// EndRow ends a row, given about how many bytes it has uncompressed.
func (f *File) EndRow(bytes int) error {
	f.rows++
	f.pageRows++
	f.pageBytes += bytes
	f.groupBytes += bytes
	f.groupRows++
	switch {
	case f.groupRows >= f.opt.Rows || f.groupBytes >= f.opt.Bytes:
		return f.Flush()
	case f.pageRows >= f.opt.PageRows || f.pageBytes >= f.opt.PageBytes:
		f.endPage()
	}
	return nil
}

func (f *File) endPage() {
	if f.pageRows == 0 {
		return
	}
	if f.before != nil {
		f.before()
	}
	f.encoding.Wait()
	f.turn()
	f.page.rows, f.pageRows, f.pageBytes = f.pageRows, 0, 0
	if f.opt.Concurrent {
		f.encoding.Go(f.encode)
		return
	}
	f.encode()
	f.turn() // the same room again
}

func (f *File) turn() {
	for _, c := range f.columns {
		c.turn()
	}
	for _, l := range f.levels {
		l.turn()
	}
}

// encode encodes the page that has turned.
func (f *File) encode() {
	for _, c := range f.columns {
		c.page(&f.page)
	}
	for _, l := range f.levels {
		l.next()
	}
}

// Flush ends the row group, if it has rows.
func (f *File) Flush() error {
	if f.groupRows > 0 && f.err == nil {
		f.endPage()
	}
	f.encoding.Wait()
	if f.groupRows == 0 || f.err != nil {
		return f.err
	}
	f.magic()
	g := format.RowGroup{NumRows: int64(f.groupRows), FileOffset: f.at, Ordinal: int16(len(f.groups)), Columns: make([]format.ColumnChunk, len(f.columns))}
	indexes, offsets := make([]format.ColumnIndex, len(f.columns)), make([]format.OffsetIndex, len(f.columns))
	for i, c := range f.columns {
		m := &g.Columns[i].MetaData
		f.chunk(c, m, &indexes[i], &offsets[i])
		g.TotalByteSize += m.TotalUncompressedSize
		g.TotalCompressedSize += m.TotalCompressedSize
		c.reset()
		c.base().clear()
	}
	f.groups, f.indexes, f.offsets = append(f.groups, g), append(f.indexes, indexes), append(f.offsets, offsets)
	f.groupRows, f.groupBytes = 0, 0
	return f.err
}

// chunk writes a column of a row group.
func (f *File) chunk(c column, m *format.ColumnMetaData, x *format.ColumnIndex, o *format.OffsetIndex) {
	b, p := c.base(), &f.page
	*m = format.ColumnMetaData{
		Type: b.kind, PathInSchema: b.path, Codec: f.opt.Codec.CompressionCodec(), NumValues: b.values,
		TotalUncompressedSize: b.plain, TotalCompressedSize: int64(len(b.out)),
	}
	if b.methods[format.RLEDictionary] > 0 {
		n := c.dictionary(p)
		p.compress()
		p.header = format.PageHeader{Type: format.DictionaryPage}
		p.header.DictionaryPageHeader.Valid = true
		p.header.DictionaryPageHeader.V = format.DictionaryPageHeader{NumValues: int32(n), Encoding: format.Plain}
		page := p.append(nil, nil, nil)
		m.DictionaryPageOffset = f.at
		m.TotalUncompressedSize += int64(p.head.Len() + len(p.data))
		m.TotalCompressedSize += int64(len(page))
		m.EncodingStats = append(m.EncodingStats, format.PageEncodingStats{PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1})
		m.Encoding = append(m.Encoding, format.Plain)
		f.write(page)
	}
	m.DataPageOffset = f.at
	if b.levels != nil {
		m.Encoding = append(m.Encoding, format.RLE)
	}
	for how, n := range b.methods {
		if n > 0 {
			m.EncodingStats = append(m.EncodingStats, format.PageEncodingStats{PageType: format.DataPageV2, Encoding: format.Encoding(how), Count: n})
			m.Encoding = append(m.Encoding, format.Encoding(how))
		}
	}
	slices.Sort(m.Encoding)
	m.Encoding = slices.Compact(m.Encoding)
	l := c.limits()
	m.Statistics = format.Statistics{NullCount: b.nulls, MinValue: l.lo, MaxValue: l.hi}
	for i := range b.pages {
		b.pages[i].Offset += f.at
	}
	*x, o.PageLocations = b.index, b.pages
	f.write(b.out)
}

func (f *File) magic() {
	if f.at == 0 {
		f.write([]byte("PAR1"))
	}
}

func (f *File) write(b []byte) {
	if f.err != nil {
		return
	}
	n, err := f.to.Write(b)
	f.at += int64(n)
	f.err = err
}

// Close ends the file. It does not close what is below.
func (f *File) Close() error {
	if err := f.Flush(); err != nil {
		return err
	}
	f.magic()
	var protocol thrift.CompactProtocol
	enc := thrift.NewEncoder(protocol.NewWriter(writer{f}))
	for i := range f.groups {
		for j := range f.indexes[i] {
			c, start := &f.groups[i].Columns[j], f.at
			if err := enc.Encode(&f.indexes[i][j]); err != nil {
				return err
			}
			c.ColumnIndexOffset, c.ColumnIndexLength = start, int32(f.at-start)
		}
	}
	for i := range f.groups {
		for j := range f.offsets[i] {
			c, start := &f.groups[i].Columns[j], f.at
			if err := enc.Encode(&f.offsets[i][j]); err != nil {
				return err
			}
			c.OffsetIndexOffset, c.OffsetIndexLength = start, int32(f.at-start)
		}
	}
	m := format.FileMetaData{
		Version: 2, Schema: f.schema.elements, NumRows: f.rows, RowGroups: f.groups, CreatedBy: f.opt.CreatedBy, ColumnOrders: f.schema.orders,
	}
	for _, k := range slices.Sorted(maps.Keys(f.opt.Metadata)) {
		m.KeyValueMetadata = append(m.KeyValueMetadata, format.KeyValue{Key: k, Value: f.opt.Metadata[k]})
	}
	start := f.at
	if err := enc.Encode(&m); err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint32(nil, uint32(f.at-start))
	f.write(append(end, "PAR1"...))
	return f.err
}

// writer is a File as an io.Writer, for what comes behind the row groups.
type writer struct{ f *File }

func (w writer) Write(b []byte) (int, error) {
	w.f.write(b)
	return len(b), w.f.err
}

// Reset begins another file with the memory, and the options, of this one.
func (f *File) Reset(to io.Writer) {
	f.encoding.Wait()
	for _, c := range f.columns {
		c.reset()
		c.base().clear()
	}
	for _, l := range f.levels {
		l.both.next()
	}
	f.pageRows, f.pageBytes, f.groupRows, f.groupBytes = 0, 0, 0, 0
	f.to, f.at, f.err, f.rows = to, 0, nil, 0
	f.groups, f.indexes, f.offsets = nil, nil, nil
}
