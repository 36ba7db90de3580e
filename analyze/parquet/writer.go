// Package parquet writes transactions as Apache Parquet files, one row each, for DuckDB, ClickHouse, Spark,
// Trino and others. The columns are the keys of schema rpcrdma.transaction/1; docs/parquet.md describes them.
package parquet

import (
	"io"
	"maps"
	"runtime"

	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/analyze/parquet/column"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Schema is the value of "rpcrdma.schema" in the key-value metadata of a file.
const Schema = "rpcrdma.transaction/1"

const createdBy = "github.com/rpcrdma/toolkit"

const (
	// maxGroupRows and GroupBytes (uncompressed) end a row group. A group is in
	// memory until it ends.
	maxGroupRows = 1 << 16
	// GroupBytes is the default row group of NewWriter, in bytes.
	GroupBytes = 12 << 20
	fileBuffer = 64 << 10
)

// shape is what a writer holds for each column.
type shape struct {
	codec *zstdCodec
	// page and chunk are bytes of a page while it is filled, and of the pieces of memory that
	// compressed pages wait in for the end of their group.
	page, chunk int
	// dictionary is how many bytes of distinct strings a column of a group may have; beyond, they
	// are written as they are.
	dictionary int64
}

// Operations are compressed more. Of transactions, the faster level makes files a tenth longer at most.
var (
	standard = shape{&zstdCodec{level: zstd.SpeedDefault}, 64 << 10, 32 << 10, 1 << 20}
	small    = shape{&zstdCodec{level: zstd.SpeedFastest}, 16 << 10, 4 << 10, 128 << 10}
)

// Writer writes one file. It is not safe for concurrent use.
type Writer struct {
	w     *column.File
	enc   encoder
	total uint64
}

// NewWriter makes a Writer of one file. Entries of metadata go into the file's
// key-value metadata.
func NewWriter(w io.Writer, metadata map[string]string) *Writer {
	return newWriter(w, metadata, &standard, GroupBytes)
}

// NewSmallWriter is NewWriter for programs with little memory: row groups end after so
// many bytes, uncompressed, their pages are smaller, and they are compressed less.
func NewSmallWriter(w io.Writer, metadata map[string]string, group int) *Writer {
	return newWriter(w, metadata, &small, group)
}

func newWriter(w io.Writer, metadata map[string]string, s *shape, group int) *Writer {
	m := map[string]string{"rpcrdma.schema": Schema}
	maps.Copy(m, metadata)
	f, rows := newRows(w, column.Options{
		Metadata: m, CreatedBy: createdBy + " version (build )", Rows: maxGroupRows, Bytes: group,
		// With small groups pages are small, too: all columns together have one of them in memory.
		PageRows: min(max(group>>10, 512), 8192), PageBytes: min(max(group/4, 64<<10), 1<<20),
		Dictionary: int(s.dictionary), Codec: small.codec, Concurrent: s == &standard && runtime.GOMAXPROCS(0) > 1,
	})
	x := &Writer{w: f, enc: encoder{rows: rows}}
	f.BeforePage(x.enc.flush)
	return x
}

func options(schema string, metadata map[string]string, s *shape) []pq.WriterOption {
	list := []pq.WriterOption{
		pq.CreatedBy(createdBy, "", ""),
		pq.KeyValueMetadata("rpcrdma.schema", schema),
		pq.Compression(s.codec),
		pq.PageBufferSize(s.page),
		pq.ColumnPageBuffers(pq.NewChunkBufferPool(s.chunk)),
		pq.WriteBufferSize(fileBuffer),
		pq.DictionaryMaxBytes(s.dictionary),
		// What is given here is for people; a page index of long names is not.
		pq.ColumnIndexSizeLimit(func([]string) int { return 64 }),
	}
	for k, v := range metadata {
		list = append(list, pq.KeyValueMetadata(k, v))
	}
	return list
}

// Add writes a transaction.
func (w *Writer) Add(v *rpc.View) error {
	w.total++
	return w.w.EndRow(w.enc.encode(v))
}

// Reset begins another file with the memory, and the metadata, of this one.
func (w *Writer) Reset(to io.Writer) {
	w.enc.drop()
	w.w.Reset(to)
	w.total = 0
}

// Rows is how many transactions have been written.
func (w *Writer) Rows() uint64 { return w.total }

// Close ends the file. It does not close what is below.
func (w *Writer) Close() error { return w.w.Close() }
