package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows say which packages of this module, of the toolkit and of others a package may import, beside the standard
// library. "x/..." stands for x and all below it. What knows the engine does not decode, and what decodes knows no
// engine: internal/arch of the toolkit does not look into modules of their own.
var arrows = map[string][]string{
	"internal/layout": {},
	"internal/store":  {"internal/layout", "gocloud.dev", "github.com/aws"},
	"internal/unit":   {"internal/job", "internal/layout", "internal/store", "toolkit/analyze/...", "toolkit/capture", "toolkit/cmd/internal/cli", "toolkit/decode/...", "toolkit/internal/snapshot", "toolkit/internal/printable", "toolkit/internal/units", "golang.org/x/sync"},
	"internal/merge":  {"internal/layout", "internal/store", "internal/job", "toolkit/analyze/...", "toolkit/cmd/internal/cli", "toolkit/internal/printable", "toolkit/internal/units", "golang.org/x/sync"},
	"internal/job":    {"internal/layout", "internal/store", "golang.org/x/sync"},
	"internal/queue":  {"internal/layout", "github.com/nats-io"},
	"internal/work":   {"internal/job", "internal/layout", "internal/queue", "internal/store", "internal/unit"},
	"internal/crew":   {},
	// For tests only.
	"internal/testtools/natstest": {"github.com/nats-io"},
	"internal/testtools/duckdb":   {"internal/layout", "internal/store", "github.com/duckdb"},
	// Live summaries: the part that meets packets knows no engine, but for the form of a summary.
	"internal/live":   {"internal/layout", "toolkit/analyze/monitor", "toolkit/analyze/text", "toolkit/cmd/internal/cli", "github.com/nats-io", "github.com/prometheus/client_golang"},
	"internal/edge":   {"internal/layout", "internal/live", "internal/store", "toolkit/analyze/...", "toolkit/capture/...", "toolkit/cmd/internal/...", "toolkit/decode/duplicates", "toolkit/decode/rpc", "toolkit/internal/units"},
	"internal/screen": {"internal/live", "toolkit/analyze/text", "toolkit/internal/printable", "toolkit/internal/table", "toolkit/internal/units", "github.com/charmbracelet", "github.com/mattn/go-runewidth"},
}

const (
	fleet   = "github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/"
	toolkit = "github.com/rpcrdma/toolkit/"
)

func TestArrows(t *testing.T) {
	err := filepath.WalkDir("internal", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(name))
		allowed, ok := arrows[pkg]
		if !ok {
			t.Errorf("%s has no row in the table; there are %q", pkg, slices.Sorted(maps.Keys(arrows)))
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if strings.HasPrefix(p, fleet) {
				p = strings.TrimPrefix(p, fleet)
			} else if strings.HasPrefix(p, toolkit) {
				p = "toolkit/" + strings.TrimPrefix(p, toolkit)
			}
			if first, _, _ := strings.Cut(p, "/"); p != pkg && (strings.Contains(first, ".") || first == "internal" || first == "toolkit") && !slices.ContainsFunc(allowed, func(a string) bool { return matches(a, p) }) {
				t.Errorf("%s imports %s", name, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// matches reports whether an import is of what a row names.
func matches(allowed, p string) bool {
	if base, ok := strings.CutSuffix(allowed, "/..."); ok {
		return p == base || strings.HasPrefix(p, base+"/")
	}
	own := strings.HasPrefix(allowed, "internal/") || strings.HasPrefix(allowed, "toolkit/")
	return p == allowed || !own && strings.HasPrefix(p, allowed+"/")
}
