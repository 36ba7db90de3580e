// Package column writes Parquet files column by column: a program appends each value of a row to
// the column that it belongs to, then ends the row. What a row is, is not known here.
//
// A writer for any Go type has to look at each row by reflection, and to move each value through
// an interface; with 85 columns that took ten times as long as decoding the packets. This package
// does only what such a writer does besides: it cuts columns into pages and row groups, and keeps
// their statistics and indexes. The library parquet-go does the encodings, compression, page headers and
// the footer, and derives the schema from a Go type.
//
//	s := column.SchemaOf(parquet.SchemaOf(Row{}))
//	f := column.New(w, s, column.Options{})
//	name, size := f.Texts("name"), f.Ints("size")
//	f.Ready()
//	name.Add("a"); size.Add(1)
//	err := f.EndRow(16)
//	err = f.Close()
//
// Levels are as in the paper on Dremel: see [Levels].
package column
