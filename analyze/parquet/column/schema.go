package column

import (
	"bytes"
	"fmt"
	"strings"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Schema describes the columns of a file.
type Schema struct {
	elements thrift.Slice[format.SchemaElement]
	orders   thrift.Slice[format.ColumnOrder]
	leaves   []leaf
	at       map[string]int // by path, with dots
}

// leaf is a column of a Schema.
type leaf struct {
	path           []string
	kind           format.Type
	unsigned       bool
	maxRep, maxDef byte
}

// SchemaOf is a schema of parquet-go.
func SchemaOf(schema *pq.Schema) *Schema {
	// An empty file of it has the description that a full one must have.
	var file bytes.Buffer
	w := pq.NewGenericWriter[any](&file, schema)
	if err := w.Close(); err != nil {
		panic(err)
	}
	f, err := pq.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		panic(err)
	}
	m := f.Metadata()
	s := &Schema{elements: m.Schema, orders: m.ColumnOrders, at: make(map[string]int)}
	for _, path := range f.Schema().Columns() {
		c, _ := f.Schema().Lookup(path...)
		l := leaf{path: path, kind: format.Type(c.Node.Type().Kind()), maxRep: byte(c.MaxRepetitionLevel), maxDef: byte(c.MaxDefinitionLevel)}
		if t := c.Node.Type().LogicalType(); t != nil {
			if i, ok := t.Value.(*format.IntType); ok {
				l.unsigned = !i.IsSigned
			}
		}
		s.at[strings.Join(path, ".")] = len(s.leaves)
		s.leaves = append(s.leaves, l)
	}
	return s
}

// leaf finds a column of a kind; a program that names another one is wrong.
func (s *Schema) leaf(path string, kind format.Type) (*leaf, int) {
	i, ok := s.at[path]
	if !ok || s.leaves[i].kind != kind {
		panic(fmt.Sprintf("column: no column %s of type %v", path, kind))
	}
	return &s.leaves[i], i
}
