package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fewOperations is how many procedures and operations one list may name: a switch,
// the keys or elements of a literal, a chain of comparisons. Longer lists repeat what
// decode/nfs/ops knows, and a new operation is missing in them.
const fewOperations = 3

// mayList are the packages, files and functions that may have longer ones, with the
// reason. Arguments and results of an operation are types of their own, so that what
// reads their fields has to name them.
var mayList = map[string]string{
	"decode/nfs":       "codecs, and the table of what is known of operations",
	"replay/nfsserver": "the server executes each operation",
	"test":             "tests",

	"replay/planner/nfs3.go":                       "table of functions",
	"replay/planner/nfs4client.go":                 "table of functions",
	"replay/planner/nfs4data.go":                   "table of functions",
	"replay/planner/nfs4objects.go":                "table of functions",
	"replay/planner/nfs4state.go":                  "table of functions",
	"replay/guard/foreign.go:foreign":              "where arguments name a client or a session",
	"replay/guard/compound.go:attributes":          "where arguments have attributes",
	"replay/expected":                              "what operations make of files, their names and attributes",
	"replay/judge/clock.go":                        "where results have attributes",
	"replay/judge/handles.go:handles":              "where results have handles and file numbers",
	"analyze/session/recorder.go:operations":       "what makes sessions and layouts",
	"replay/judge/self.go:self":                    "what results say of other calls",
	"replay/internal/bindings/learn.go:learnCtime": "where results have attributes",
	"replay/internal/bindings/steps.go:step":       "what opens and locks are reclaimed with",
	"analyze/check/offload.go:take":                "what goes on after its reply, and what tells of it",
	"analyze/invariant/nfs3.go":                    "where results have attributes and pages",
	"analyze/invariant/nfs4.go:operation":          "where results have attributes, pages and change_info",
	"analyze/extract/extract.go:Add":               "where calls and replies have file data",
	"analyze/extract/extract.go:operation":         "where calls and replies have file data",
	"decode/rpc/names.go:learnAll":                 "where replies have names and handles",
	"decode/rpc/projectionlearn.go:factOf3":        "where the usual calls and replies have names and handles: a test compares it with names.go",
	"decode/rpc/file3.go:fileOf3":                  "where the usual calls have handles and names: a test compares it with decode/nfs/ops",
	"decode/rpc/file4.go:formOf":                   "where the usual operations have names and ranges: a test compares it with decode/nfs/ops",
	"examples":                                     "programs that show how one asks for an operation",
}

var (
	// operationName is the name of a constant, operationType that of the arguments or
	// results of one.
	operationName = regexp.MustCompile(`^(OP_|NFSPROC|CB_|ACLPROC|MOUNTPROC|NLM)[0-9A-Z_]+$`)
	operationType = regexp.MustCompile(`^[A-Z0-9_]{3,}(args|res)$`)
	// byNumber is the last name of an expression that holds a number of an operation.
	byNumber = regexp.MustCompile(`^(Procedure|OpNumber|Op|Number)$`)
)

// TestOperations finds lists of operations outside decode/nfs/ops.
func TestOperations(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "testdata" || name != root && (strings.HasPrefix(base, ".") || otherModule(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, l := range operationLists(f) {
			if l.names <= fewOperations {
				continue
			}
			if p := listed(rel, l.function); p != "" {
				used[p] = true
			} else {
				t.Errorf("%s: %s lists %d procedures or operations: what is known of them belongs to decode/nfs/ops", set.Position(l.pos), l.function, l.names)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for p := range mayList {
		if !used[p] && p != "test" && p != "examples" {
			t.Errorf("%s has no long list of operations any more: take it out of mayList", p)
		}
	}
}

// listed is the entry of mayList for a function of a file; empty if there is none.
func listed(file, function string) string {
	if p := file + ":" + function; mayList[p] != "" {
		return p
	}
	for p := file; p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
		if mayList[p] != "" {
			return p
		}
	}
	return ""
}

// operationList is a list of operations in a function.
type operationList struct {
	pos      token.Pos
	function string
	names    int
}

func operationLists(f *ast.File) (lists []operationList) {
	for _, d := range f.Decls {
		function := "a declaration"
		if fn, ok := d.(*ast.FuncDecl); ok {
			function = fn.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if n == nil {
				return false
			}
			if names := operationsIn(n); names > 0 {
				lists = append(lists, operationList{n.Pos(), function, names})
			}
			return true
		})
	}
	return lists
}

// operationsIn is how many operations a node lists itself.
func operationsIn(n ast.Node) int {
	names := map[string]bool{}
	switch n := n.(type) {
	case *ast.SwitchStmt:
		number := byNumber.MatchString(lastName(n.Tag))
		eachCase(n.Body, func(e ast.Expr) {
			ast.Inspect(e, func(n ast.Node) bool { return note(n, names, operationName) })
			if l, ok := e.(*ast.BasicLit); ok && number && l.Kind == token.INT {
				names[l.Value] = true
			}
		})
	case *ast.TypeSwitchStmt:
		eachCase(n.Body, func(e ast.Expr) {
			ast.Inspect(e, func(n ast.Node) bool { return note(n, names, operationType) })
		})
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Key
			}
			note(e, names, operationName)
		}
	case *ast.BinaryExpr:
		if n.Op == token.LOR || n.Op == token.LAND {
			ast.Inspect(n, func(n ast.Node) bool { return note(n, names, operationName) })
		}
	}
	return len(names)
}

// note takes in a name that a pattern matches, and returns true.
func note(n ast.Node, names map[string]bool, pattern *regexp.Regexp) bool {
	if s, ok := n.(*ast.SelectorExpr); ok && pattern.MatchString(s.Sel.Name) {
		names[s.Sel.Name] = true
	}
	return true
}

func eachCase(b *ast.BlockStmt, f func(ast.Expr)) {
	for _, s := range b.List {
		if c, ok := s.(*ast.CaseClause); ok {
			for _, e := range c.List {
				f(e)
			}
		}
	}
}

// lastName is the last identifier of an expression: Op of c.Op and of uint32(c.Op).
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		if len(e.Args) == 1 {
			return lastName(e.Args[0])
		}
	}
	return ""
}

// TestOperationLists makes sure that lists are found in each of their forms.
func TestOperationLists(t *testing.T) {
	for src, want := range map[string]int{
		`switch op { case nfs4.OP_READ, nfs4.OP_WRITE: case nfs4.OP_SEEK: case nfs4.OP_COPY: }`: 4,
		`switch { case op == nfs4.OP_READ || op == nfs4.OP_WRITE: case op == nfs4.OP_READ: }`:   2,
		`switch tx.Procedure { case 2, 7, 8: }`:                                                 3,
		`switch uint32(c.Op) { case 2, 7, 8: }`:                                                 3,
		`switch n { case 2, 7, 8: }`:                                                            0,
		`switch m.(type) { case *nfs3.READ3args: case *nfs4.WRITE4args, *nfs4.SETATTR4res: }`:   3,
		`switch m.(type) { case *nfs4.CompoundArgs: case nfs4.Op: }`:                            0,
		`_ = map[uint32]bool{nfs3.NFSPROC3_READ: true, nfs3.NFSPROC3_WRITE: true}`:              2,
		`_ = []nfs4.NfsOpnum4{nfs4.OP_READ, nfs4.OP_WRITE, nfs4.OP_READ}`:                       2,
		`_ = a && (op == nfs4.OP_READ || op == nfs4.OP_WRITE || op == nfs4.OP_CLOSE)`:           3,
		`_ = nfs4.OPEN4_CREATE`: 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+src+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, l := range operationLists(f) {
			got = max(got, l.names)
		}
		if got != want {
			t.Errorf("%s: %d, want %d", src, got, want)
		}
	}
}
