// Package parquet writes transactions as Apache Parquet files, one row each, for DuckDB, ClickHouse, Spark,
// Trino and others. The columns are the keys of schema rpcrdma.transaction/1; docs/parquet.md describes them.
package parquet

import (
	"io"

	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Schema is the value of "rpcrdma.schema" in the key-value metadata of a file.
const Schema = "rpcrdma.transaction/1"

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

var (
	usual = shape{&zstdCodec{level: zstd.SpeedDefault}, 64 << 10, 32 << 10, 1 << 20}
	small = shape{&zstdCodec{level: zstd.SpeedFastest}, 16 << 10, 4 << 10, 128 << 10}
)

// Writer writes one file. It is not safe for concurrent use.
type Writer struct {
	w     *pq.GenericWriter[Row]
	enc   encoder
	one   [1]Row
	rows  int
	bytes int
	total uint64
	group int // bytes
}

// NewWriter makes a Writer of one file. Entries of metadata go into the file's
// key-value metadata.
func NewWriter(w io.Writer, metadata map[string]string) *Writer {
	return newWriter(w, metadata, &usual, GroupBytes)
}

// NewSmallWriter is NewWriter for programs with little memory: row groups end after so
// many bytes, uncompressed, their pages are smaller, and they are compressed less.
func NewSmallWriter(w io.Writer, metadata map[string]string, group int) *Writer {
	return newWriter(w, metadata, &small, group)
}

func newWriter(w io.Writer, metadata map[string]string, s *shape, group int) *Writer {
	return &Writer{w: pq.NewGenericWriter[Row](w, options(Schema, metadata, s)...), group: group}
}

func options(schema string, metadata map[string]string, s *shape) []pq.WriterOption {
	list := []pq.WriterOption{
		pq.CreatedBy("github.com/rpcrdma/toolkit", "", ""),
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
	w.bytes += w.enc.encode(v)
	w.one[0] = w.enc.row
	if _, err := w.w.Write(w.one[:]); err != nil {
		return err
	}
	w.total++
	w.rows++
	if w.rows >= maxGroupRows || w.bytes >= w.group {
		w.rows, w.bytes = 0, 0
		return w.w.Flush()
	}
	return nil
}

// Reset begins another file with the memory, and the metadata, of this one.
func (w *Writer) Reset(to io.Writer) {
	w.w.Reset(to)
	w.rows, w.bytes, w.total = 0, 0, 0
}

// Rows is how many transactions have been written.
func (w *Writer) Rows() uint64 { return w.total }

// Close ends the file. It does not close what is below.
func (w *Writer) Close() error { return w.w.Close() }
