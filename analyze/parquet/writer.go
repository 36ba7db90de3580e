// Package parquet writes transactions as Apache Parquet files, one row each, for DuckDB, ClickHouse, Spark,
// Trino and others. The columns are the keys of schema rpcrdma.transaction/1; docs/parquet.md describes them.
package parquet

import (
	"io"
	"maps"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

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
	// maxDictionary is how many bytes of distinct strings a column of a group
	// may have; beyond, they are written as they are.
	maxDictionary = 1 << 20
	pageBytes     = 64 << 10
)

// The codecs are shared by all writers: each one has a pool of encoders. The faster one looks back less far: files
// become a tenth longer at most, and it takes half the memory. Operations are compressed more.
var (
	codec      = &zstd.Codec{Level: zstd.DefaultLevel, Concurrency: 1}
	smallCodec = &zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}
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
	return newWriter(w, metadata, GroupBytes)
}

// NewSmallWriter is NewWriter for programs with little memory: row groups end after so
// many bytes, uncompressed, and are compressed less.
func NewSmallWriter(w io.Writer, metadata map[string]string, group int) *Writer {
	return newWriter(w, metadata, group)
}

func newWriter(w io.Writer, metadata map[string]string, group int) *Writer {
	m := map[string]string{"rpcrdma.schema": Schema}
	maps.Copy(m, metadata)
	f, rows := newRows(w, column.Options{
		Metadata: m, CreatedBy: createdBy + " version (build )", Rows: maxGroupRows, Bytes: group,
		// With small groups pages are small, too: all columns together have one of them in memory.
		PageRows: min(max(group>>10, 512), 8192), PageBytes: min(max(group/4, 64<<10), 1<<20),
		Dictionary: maxDictionary, Codec: smallCodec,
	})
	return &Writer{w: f, enc: encoder{rows: rows}}
}

func options(schema string, metadata map[string]string, codec *zstd.Codec) []pq.WriterOption {
	list := []pq.WriterOption{
		pq.CreatedBy(createdBy, "", ""),
		pq.KeyValueMetadata("rpcrdma.schema", schema),
		pq.Compression(codec),
		pq.PageBufferSize(pageBytes),
		pq.WriteBufferSize(pageBytes),
		pq.DictionaryMaxBytes(maxDictionary),
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
	w.w.Reset(to)
	w.total = 0
}

// Rows is how many transactions have been written.
func (w *Writer) Rows() uint64 { return w.total }

// Close ends the file. It does not close what is below.
func (w *Writer) Close() error { return w.w.Close() }
