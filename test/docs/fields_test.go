package docs_test

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/parquet"
)

// property is what a JSON schema says of a key.
type property struct {
	says     map[string]any
	required bool
	null     bool
}

// schemaKeys adds the keys of an object of a JSON schema, joined with dots, and those below it. Arrays have no part of a name.
func schemaKeys(keys map[string]property, doc, at map[string]any, prefix string) {
	at, _ = resolved(doc, at)
	if items, ok := at["items"].(map[string]any); ok {
		schemaKeys(keys, doc, items, prefix)
	}
	required, _ := at["required"].([]any)
	properties, _ := at["properties"].(map[string]any)
	for name, x := range properties {
		says, null := resolved(doc, x.(map[string]any))
		keys[prefix+name] = property{says, slices.Contains(required, any(name)), null}
		schemaKeys(keys, doc, x.(map[string]any), prefix+name+".")
	}
}

// resolved is what a schema refers to, or the one of two that is not null.
func resolved(doc, at map[string]any) (says map[string]any, null bool) {
	either, _ := at["anyOf"].([]any)
	for _, x := range either {
		if x := x.(map[string]any); x["type"] == "null" {
			null = true
		} else {
			at = x
		}
	}
	if ref, ok := at["$ref"].(string); ok {
		at = doc["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	types, _ := at["type"].([]any)
	return at, null || slices.Contains(types, any("null"))
}

// columnNames are the columns of a file of Parquet, and the groups that they are in.
func columnNames(t *testing.T) map[string]bool {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.NewWriter(&b, nil).Close(); err != nil {
		t.Fatal(err)
	}
	f, err := pq.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, path := range f.Schema().Columns() {
		for i := range path {
			names[strings.ReplaceAll(strings.Join(path[:i+1], "."), ".list.element", "")] = true
		}
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return strings.HasSuffix(name, ".list") })
	return names
}

// TestFormatsHaveTheFields compares the formats with the table of attributes. That ndjson of all samples has no key beside those of its
// schema is what TestSchemas says.
func TestFormatsHaveTheFields(t *testing.T) {
	keys, columns := make(map[string]property), columnNames(t)
	doc := loadSchemas(t).source["transaction"]
	schemaKeys(keys, doc, doc, "")
	table := make(map[string]bool)
	for _, f := range fields.All() {
		if table[f.Name] {
			t.Errorf("%s is in the table twice", f.Name)
		}
		table[f.Name] = true
		if f.Doc == "" || (f.Missing == 0) != (f.Why == "") || (f.Read == nil) != (f.Type == fields.Group) {
			t.Errorf("%s: an entry needs a sentence, a reason if a format lacks it, and a way to read its values", f.Name)
		}
		if want := unitOf(f.Name); want != fields.None && f.Unit != want {
			t.Errorf("%s: its unit is %q, not %q", f.Name, f.Unit, want)
		}
		p, is := keys[f.Name]
		if is {
			checkProperty(t, &f, &p)
		}
		for format, has := range map[fields.Format]bool{fields.NDJSON: is, fields.Parquet: columns[f.Name]} {
			if has != f.In(format) {
				t.Errorf("%s: the table says %v of format %d, the format says %v", f.Name, f.In(format), format, has)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		columns[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		if !table[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// checkProperty compares what the JSON schema says of an attribute with the table.
func checkProperty(t *testing.T, f *fields.Field, p *property) {
	t.Helper()
	if !strings.Contains(f.Name, ".") {
		if p.required != (f.Absent != fields.Omitted) {
			t.Errorf("%s: the schema says required: %v, the table the opposite", f.Name, p.required)
		}
		if p.null != (f.Absent == fields.Null || f.Recorded != nil) {
			t.Errorf("%s: the schema says that null is allowed: %v, the table the opposite", f.Name, p.null)
		}
	}
	if enum, ok := p.says["enum"].([]any); ok {
		var want []any
		for _, s := range f.Symbols() {
			want = append(want, s)
		}
		if !reflect.DeepEqual(enum, want) {
			t.Errorf("%s: values %v, want %v", f.Name, enum, want)
		}
	}
}

// unitOf is the unit that a name promises.
func unitOf(name string) fields.Unit {
	switch {
	case strings.HasSuffix(name, "_bytes"):
		return fields.Octets
	case strings.HasSuffix(name, "_ns"):
		return fields.Nanoseconds
	}
	return fields.None
}
