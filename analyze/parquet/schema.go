package parquet

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/parquet/column"
)

// schema describes the columns of a file of transactions: the attributes of the table, in its order. Members of an object are a group;
// docs/parquet.md lists the few differences from rpcrdma.transaction/1.
//
// Integers are INT64 whatever the width on the wire, since several engines have no unsigned types. Only those that are Wide are UINT_64.
//
// It is made once: that takes as long as a thousand rows.
var schema = sync.OnceValue(func() *column.Schema {
	return column.SchemaOf(pq.NewSchema("Row", pq.SchemaOf(reflect.New(structure("")).Interface())))
})

// structure is the type of a record of the attributes whose names begin with a prefix.
func structure(prefix string) reflect.Type {
	var members []reflect.StructField
	for _, f := range fields.All() {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok || strings.Contains(name, ".") || !f.In(fields.Parquet) {
			continue
		}
		of, options := typeOf(&f)
		members = append(members, reflect.StructField{
			Name: fmt.Sprint("F", len(members)), Type: of, Tag: reflect.StructTag(`parquet:"` + name + options + `"`),
		})
	}
	return reflect.StructOf(members)
}

// typeOf is the type of an attribute, and what its tag says of it.
func typeOf(f *fields.Field) (of reflect.Type, options string) {
	l, isList := lists[f.Name]
	optional := !always(f)
	switch {
	case isList:
		return l.of, l.options
	case hasMembers(f):
		return structure(f.Name + "."), ""
	case f.Several:
		return reflect.TypeFor[[]string](), ",list"
	case f.Type == fields.Time:
		of, options = reflect.TypeFor[int64](), ",timestamp(nanosecond:utc)"
	case f.Type == fields.Boolean:
		of = reflect.TypeFor[bool]()
	case isNumber(f) && f.Wide:
		of = reflect.TypeFor[uint64]()
	case isNumber(f):
		of = reflect.TypeFor[int64]()
	default:
		of = reflect.TypeFor[string]()
	}
	if optional {
		options = ",optional" + options
		if f.Type != fields.Time {
			of = reflect.PointerTo(of)
		}
	}
	return of, options
}

func isNumber(f *fields.Field) bool {
	return f.Type == fields.Number || f.Type == fields.Count || f.Type == fields.Duration || f.Type == fields.Time
}

// always reports whether an attribute has a value in each row: a kernel has not recorded all of them.
func always(f *fields.Field) bool {
	return f.Absent != fields.Null && f.Absent != fields.Omitted && f.Recorded == nil
}

func hasMembers(f *fields.Field) bool {
	for _, m := range fields.All() {
		if strings.HasPrefix(m.Name, f.Name+".") && m.In(fields.Parquet) {
			return true
		}
	}
	return false
}
