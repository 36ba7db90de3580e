package docs_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/schema.md instead of comparing with it")

const schemaReference = "docs/reference/schema.md"

// TestSchemaReference wants docs/reference/schema.md to say what docs/schemas has, and docs/schema.md to name every format.
func TestSchemaReference(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Keys of machine output\n\nEvery key of every format, from [schemas](../schemas/transaction-1.schema.json). " +
		"[schema.md](../schema.md) says which command prints what, and what holds for all. Keys of objects within objects are joined with dots; " +
		"`[]` stands for the elements of an array. `go test ./test/docs -run TestSchemaReference -update` writes this page.\n")
	schemas, guide := loadSchemas(t).source, read(t, "docs/schema.md")
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if !strings.Contains(guide, "`rpcrdma."+name+"/1`") {
			t.Errorf("docs/schema.md does not name rpcrdma.%s/1", name)
		}
		doc := schemas[name]
		fmt.Fprintf(&page, "\n## `rpcrdma.%s/1`\n\n%s\n", name, doc["description"])
		defs, _ := doc["$defs"].(map[string]any)
		k := keyTables{&page, defs}
		k.write(doc)
		for _, def := range slices.Sorted(maps.Keys(defs)) {
			at := defs[def].(map[string]any)
			if _, object := at["properties"]; !object {
				continue
			}
			fmt.Fprintf(&page, "\n**%s**", def)
			if about, ok := at["description"].(string); ok {
				fmt.Fprintf(&page, ": %s", about)
			}
			page.WriteByte('\n')
			k.write(at)
		}
	}
	want := page.String()
	file := filepath.Join(root, filepath.FromSlash(schemaReference))
	if have, err := os.ReadFile(file); err == nil && string(have) == want {
		return
	}
	if !*update {
		t.Fatalf("%s does not say what docs/schemas has: go test ./test/docs -run TestSchemaReference -update", schemaReference)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// keyTables writes tables of the keys of objects in a schema with these definitions.
type keyTables struct {
	page *strings.Builder
	defs map[string]any
}

// write writes the table of an object's keys.
func (k *keyTables) write(object map[string]any) {
	if _, ok := object["properties"]; !ok {
		return
	}
	k.page.WriteString("\n| key | type | meaning |\n|---|---|---|\n")
	k.rows(object, "")
}

// rows writes a row for each key of an object, and for those of the objects in it.
func (k *keyTables) rows(object map[string]any, prefix string) {
	properties, _ := object["properties"].(map[string]any)
	required, _ := object["required"].([]any)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		at := properties[key].(map[string]any)
		kind, below := k.kindOf(at)
		if !slices.Contains(required, any(key)) {
			kind += ", optional"
		}
		about, _ := at["description"].(string)
		fmt.Fprintf(k.page, "| `%s%s` | %s | %s |\n", prefix, key, kind, strings.ReplaceAll(about, "|", `\|`))
		if below != nil {
			if array := at["items"] != nil; array {
				key += "[]"
			}
			k.rows(below, prefix+key+".")
		}
	}
}

// kindOf says what values a key has. Objects whose keys are listed in place are returned as well.
func (k *keyTables) kindOf(at map[string]any) (kind string, below map[string]any) {
	if ref, ok := at["$ref"].(string); ok {
		return k.reference(ref)
	}
	if either, ok := at["anyOf"].([]any); ok {
		var kinds []string
		for _, x := range either {
			kind, b := k.kindOf(x.(map[string]any))
			kinds = append(kinds, kind)
			if b != nil {
				below = b
			}
		}
		return strings.Join(kinds, " or "), below
	}
	if c, ok := at["const"]; ok {
		return fmt.Sprintf("`%v`", c), nil
	}
	if values, ok := at["enum"].([]any); ok {
		return list(values, "`%v`", ", "), nil
	}
	types, several := at["type"].([]any)
	if one, ok := at["type"].(string); ok {
		types = []any{one}
	} else if !several {
		types = []any{"any"}
	}
	if items, ok := at["items"].(map[string]any); ok {
		kind, below = k.kindOf(items)
		kind = "array of " + kind
		if slices.Contains(types, any("null")) {
			kind += ", or null"
		}
		return kind, below
	}
	if _, ok := at["properties"]; ok {
		below = at
	}
	return list(types, "%v", " or "), below
}

// reference says what a $ref stands for: a table of its own, another format, or a plain type.
func (k *keyTables) reference(ref string) (kind string, below map[string]any) {
	def, here := strings.CutPrefix(ref, "#/$defs/")
	if !here {
		return "as `rpcrdma." + strings.TrimSuffix(ref, schemaSuffix) + "/1`", nil
	}
	at, _ := k.defs[def].(map[string]any)
	if _, object := at["properties"]; !object && at != nil {
		return k.kindOf(at)
	}
	return "**" + def + "**", nil
}

func list(values []any, format, between string) string {
	var kinds []string
	for _, v := range values {
		kinds = append(kinds, fmt.Sprintf(format, v))
	}
	return strings.Join(kinds, between)
}
