package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkips: no test calls Skip, because go test does not mention it. A test that needs more than Go has a
// build tag, and a lane that says what it could not run (CONTRIBUTING.md). test/live/run has to run each
// test with the tag live.
func TestSkips(t *testing.T) {
	lane, err := os.ReadFile(filepath.Join(root, "test/live/run"))
	if err != nil {
		t.Fatal(err)
	}
	live := 0
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || name != root && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if skips(n) {
				t.Errorf("%s: a test is skipped; give it a build tag instead", set.Position(n.Pos()))
			}
			return true
		})
		if !needsRoot(f) {
			return nil
		}
		live++
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" && !runs(string(lane), filepath.ToSlash(dir), fn.Name.Name) {
				t.Errorf("%s: test/live/run does not run it", set.Position(fn.Pos()))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if live == 0 {
		t.Error("no test with the tag live was found")
	}
}

// needsRoot reports whether a file is compiled with the tag live only.
func needsRoot(f *ast.File) bool {
	for _, c := range f.Comments {
		for _, l := range c.List {
			if strings.HasPrefix(l.Text, "//go:build live") {
				return true
			}
		}
	}
	return false
}

// runs reports whether the lane runs a test: its whole package, the test by name, or all that it has
// compiled.
func runs(lane, dir, test string) bool {
	for line := range strings.Lines(lane) {
		line = strings.TrimSpace(line)
		whole := line == "all_ran ./"+dir+" || exit 1"
		named := strings.HasPrefix(line, "all_ran -run ") && strings.HasSuffix(line, " ./"+dir+" || exit 1") && strings.Contains(line, test)
		compiled := strings.HasPrefix(line, "go test -tags live -c ") && strings.HasSuffix(line, " ./"+dir+" || exit 1")
		if whole || named || compiled {
			return true
		}
	}
	return false
}

// skips reports whether a node calls Skip, Skipf or SkipNow of a test.
func skips(n ast.Node) bool {
	c, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Skip" && s.Sel.Name != "Skipf" && s.Sel.Name != "SkipNow" {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && (x.Name == "t" || x.Name == "b" || x.Name == "tb")
}
