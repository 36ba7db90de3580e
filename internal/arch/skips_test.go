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

// skipBegin and skipEnd are how the reason of a skipped test begins and ends, so that it can be found
// in a log, and where the test runs.
const skipBegin, skipEnd = "NOT TESTED: ", "; `sudo test/live/run` runs it"

// TestSkips: a test is skipped only where something is missing that it needs. It says so
// in one form, and the lane that has everything runs it: test/live/run names the test, or
// runs its package.
func TestSkips(t *testing.T) {
	lane, err := os.ReadFile(filepath.Join(root, "test/live/run"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || name != root && (strings.HasPrefix(d.Name(), ".") || otherModule(name))) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				text, ok := skipText(n)
				if !ok {
					return true
				}
				found++
				if !strings.HasPrefix(text, skipBegin) || !strings.HasSuffix(text, skipEnd) {
					t.Errorf("%s: skips with %q, and not with %q…%q", set.Position(n.Pos()), text, skipBegin, skipEnd)
				}
				fn, _ := decl.(*ast.FuncDecl)
				if !strings.Contains(string(lane), "./"+filepath.ToSlash(dir)) || fn != nil && strings.HasPrefix(fn.Name.Name, "Test") &&
					!strings.Contains(string(lane), fn.Name.Name) && !strings.Contains(string(lane), "\nall_ran ./"+filepath.ToSlash(dir)+" ") {
					t.Errorf("%s: test/live/run does not run it", set.Position(n.Pos()))
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no test that can be skipped was found")
	}
}

// skipText is the reason that a call of Skip, Skipf or SkipNow gives.
func skipText(n ast.Node) (string, bool) {
	c, ok := n.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Skip" && s.Sel.Name != "Skipf" && s.Sel.Name != "SkipNow" {
		return "", false
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != "t" && x.Name != "b" && x.Name != "tb" {
		return "", false
	}
	if len(c.Args) > 0 {
		if l, ok := c.Args[0].(*ast.BasicLit); ok {
			return strings.Trim(l.Value, `"`), true
		}
	}
	return "", true
}
