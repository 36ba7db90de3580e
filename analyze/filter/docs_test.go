package filter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	guide     = filepath.Join("..", "..", "docs", "filter.md")
	reference = filepath.Join("..", "..", "docs", "reference", "fields.md")
)

// between replaces what stands between two marks.
func between(t *testing.T, text, name, content string) string {
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatalf("%s lacks the marks of %s", reference, name)
	}
	return text[:i+len(begin)] + content + text[j:]
}

// The lists of fields in the reference are generated.
func TestGuideListsFields(t *testing.T) {
	b, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
	for _, f := range schemaFields() {
		i := f.info()
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", i.Name, i.Type, i.Description)
	}
	table.WriteByte('\n')
	var lists strings.Builder
	for _, p := range protocols().programs {
		fmt.Fprintf(&lists, "\n**%s**:\n", p.name)
		line := ""
		for _, l := range p.leaves() {
			if len(line)+len(l.name) > 86 {
				lists.WriteString(line + "\n")
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += "`" + l.name + "`"
		}
		lists.WriteString(line + "\n")
	}
	lists.WriteByte('\n')
	want := between(t, string(b), "fields", table.String())
	want = between(t, want, "programs", lists.String())
	if string(b) == want {
		return
	}
	if !*update {
		t.Fatalf("the lists of fields in %s are out of date: run go generate", reference)
	}
	if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What the guide shows works.
func TestGuideExamples(t *testing.T) {
	b, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(b), "```filter\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("no examples")
	}
	for _, expr := range strings.Split(strings.TrimSpace(block), "\n") {
		if _, err := Compile(expr); err != nil {
			t.Errorf("%s: %v", expr, err)
		}
	}
	for _, line := range strings.Split(string(b), "\n") {
		// First column of the table of names of programs' fields.
		if !strings.HasPrefix(line, "| `nfs") {
			continue
		}
		for _, name := range strings.Split(strings.Split(line, "|")[1], ",") {
			if _, err := Field(strings.Trim(name, " `")); err != nil {
				t.Error(err)
			}
		}
	}
}
