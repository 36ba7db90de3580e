// Package parquet writes transactions as Apache Parquet files, one row each, for DuckDB, ClickHouse, Spark,
// Trino and others. The columns are the keys of schema rpcrdma.transaction/1; docs/parquet.md describes them.
package parquet

import (
	"io"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

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
	// maxDictionary is how many bytes of distinct strings a column of a group
	// may have; beyond, they are written as they are.
	maxDictionary = 1 << 20
	pageBytes     = 64 << 10
)

// The codecs are shared by all writers: each one has a pool of encoders. That of
// small writers looks back less far, which takes half the memory.
var (
	codec      = &zstd.Codec{Level: zstd.DefaultLevel, Concurrency: 1}
	smallCodec = &zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}
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
	return newWriter(w, metadata, codec, GroupBytes)
}

// NewSmallWriter is NewWriter for programs with little memory: row groups end after so
// many bytes, uncompressed, and are compressed less.
func NewSmallWriter(w io.Writer, metadata map[string]string, group int) *Writer {
	return newWriter(w, metadata, smallCodec, group)
}

func newWriter(w io.Writer, metadata map[string]string, codec *zstd.Codec, group int) *Writer {
	return &Writer{w: pq.NewGenericWriter[Row](w, options(Schema, metadata, codec)...), group: group}
}

func options(schema string, metadata map[string]string, codec *zstd.Codec) []pq.WriterOption {
	list := []pq.WriterOption{
		pq.CreatedBy("github.com/rpcrdma/toolkit", "", ""),
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
