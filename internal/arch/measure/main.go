// Measure counts how a checkout of the module is built, for a comparison of two of them:
//
//	go run ./internal/arch/measure CHECKOUT...
//
// For each package below replay it prints
//
//   - lines of Go, and names that other packages can use: types, functions, methods of
//     exported types, constants, variables;
//   - functions of more than 100 lines or with a cyclomatic complexity above 25;
//   - calls to functions of the same file, and how many of these lead backwards, to a
//     function that stands above its caller. A pair of functions counts once. A method is
//     found by its name, if the package has only one of that name.
//
// For the checkout it prints the rows of internal/arch, functions above the limits
// everywhere, and what is known of operations outside decode/nfs/ops: lists of more than three
// procedures or operations in one statement, and files that name one.
//
// Tests, generated files and examples do not count.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: measure CHECKOUT...")
		os.Exit(2)
	}
	for _, root := range os.Args[1:] {
		c, err := read(root)
		if err != nil {
			fmt.Fprintln(os.Stderr, "measure:", err)
			os.Exit(1)
		}
		c.print(root)
	}
}

// checkout is what was counted.
type checkout struct {
	packages map[string]*room
	rows     [2]int // of internal/arch: all, below replay
	lists    []string
	naming   map[string]map[string]bool // files by operation
}

// room is a package.
type room struct {
	path             string
	lines, exported  int
	above            []string
	calls, backwards int

	files []*source
	named map[string]int // functions and methods of that name
}

type source struct {
	name string
	set  *token.FileSet
	file *ast.File
}

func read(root string) (*checkout, error) {
	c := &checkout{packages: map[string]*room{}, naming: map[string]map[string]bool{}}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return c.source(filepath.ToSlash(rel), name)
	})
	for _, r := range c.packages {
		r.count()
	}
	return c, err
}

var row = regexp.MustCompile(`(?m)^\t\{packages: "([^"]*)"`)

func (c *checkout) source(rel, name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if rel == "internal/arch/arch_test.go" {
		for _, m := range row.FindAllStringSubmatch(string(b), -1) {
			if c.rows[0]++; strings.HasPrefix(m[1], "replay") {
				c.rows[1]++
			}
		}
	}
	if strings.HasSuffix(rel, "_test.go") || strings.HasPrefix(rel, "examples/") {
		return nil
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, b, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	dir := filepath.ToSlash(filepath.Dir(rel))
	r := c.packages[dir]
	if r == nil {
		r = &room{path: dir, named: map[string]int{}}
		c.packages[dir] = r
	}
	r.lines += strings.Count(string(b), "\n")
	r.files = append(r.files, &source{rel, set, f})
	c.operations(rel, set, f)
	return nil
}

func (c *checkout) print(root string) {
	fmt.Printf("%s\n", root)
	tw := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "PACKAGE\tLINES\tEXPORTED\tABOVE\tCALLS\tBACKWARDS\t")
	var total room
	var everywhere []string
	for _, p := range slices.Sorted(func(yield func(string) bool) {
		for p := range c.packages {
			if !yield(p) {
				return
			}
		}
	}) {
		r := c.packages[p]
		everywhere = append(everywhere, r.above...)
		if top, _, _ := strings.Cut(p, "/"); top != "replay" {
			continue
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t\n", p, r.lines, r.exported, len(r.above), r.calls, r.backwards)
		total.lines, total.exported, total.calls, total.backwards = total.lines+r.lines, total.exported+r.exported, total.calls+r.calls, total.backwards+r.backwards
		total.above = append(total.above, r.above...)
	}
	fmt.Fprintf(tw, "replay\t%d\t%d\t%d\t%d\t%d\t\n", total.lines, total.exported, len(total.above), total.calls, total.backwards)
	_ = tw.Flush()
	fmt.Printf("rows of internal/arch: %d, below replay %d\n", c.rows[0], c.rows[1])
	fmt.Printf("functions above the limits: %d\n  %s\n", len(everywhere), strings.Join(everywhere, "\n  "))
	fmt.Printf("lists of operations: %d\n  %s\n", len(c.lists), strings.Join(c.lists, "\n  "))
	sum, most, which := 0, 0, ""
	for op, files := range c.naming {
		if sum += len(files); len(files) > most || len(files) == most && op < which {
			most, which = len(files), op
		}
	}
	fmt.Printf("files that name an operation: %.2f on average of %d, at most %d (%s)\n\n", float64(sum)/float64(max(len(c.naming), 1)), len(c.naming), most, which)
}

// count fills in what is known when all files are there.
func (r *room) count() {
	for _, s := range r.files {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				r.named[f.Name.Name]++
			}
		}
	}
	for _, s := range r.files {
		r.names(s)
		r.order(s)
	}
}

// names counts exported names and functions above the limits.
func (r *room) names(s *source) {
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				r.exported++
			}
			lines := s.set.Position(d.End()).Line - s.set.Position(d.Pos()).Line + 1
			if n := complexity(d); lines > 100 || n > 25 {
				r.above = append(r.above, fmt.Sprintf("%s %s: %d lines, complexity %d", s.name, d.Name.Name, lines, n))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						r.exported++
					}
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						if n.IsExported() {
							r.exported++
						}
					}
				}
			}
		}
	}
}

// receiver is the type of a method.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// complexity is the cyclomatic one: branches, cases, && and ||, and 1.
func complexity(d *ast.FuncDecl) int {
	n := 1
	ast.Inspect(d, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// order counts calls within a file.
func (r *room) order(s *source) {
	place := map[string]token.Pos{}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && r.named[f.Name.Name] == 1 {
			place[f.Name.Name] = f.Pos()
		}
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		seen := map[string]bool{f.Name.Name: true}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch x := c.Fun.(type) {
			case *ast.Ident:
				name = x.Name
			case *ast.SelectorExpr:
				name = x.Sel.Name
			}
			at, there := place[name]
			if !there || seen[name] {
				return true
			}
			seen[name] = true
			if r.calls++; at < f.Pos() {
				r.backwards++
			}
			return true
		})
	}
}

var (
	constant = regexp.MustCompile(`^(OP_|NFSPROC3?_?|CB_|ACLPROC[23]_|MOUNTPROC3?_)[0-9A-Z_]+$`)
	message  = regexp.MustCompile(`^([A-Z0-9_]{3,}[34])(args|res)$`)
	byNumber = regexp.MustCompile(`^(Procedure|Op|Number|proc|op)$`)
)

// operations looks for what is known of operations of NFSv4 outside their codecs, the
// table, and the programs that execute or send them.
func (c *checkout) operations(rel string, set *token.FileSet, f *ast.File) {
	for _, p := range []string{"decode/nfs/", "replay/nfsserver/", "replay/client/", "internal/", "test/"} {
		if strings.HasPrefix(rel, p) {
			return
		}
	}
	for _, d := range f.Decls {
		where := "a declaration"
		if fn, ok := d.(*ast.FuncDecl); ok {
			where = fn.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if op := operation(s.Sel.Name); op != "" {
					if c.naming[op] == nil {
						c.naming[op] = map[string]bool{}
					}
					c.naming[op][rel] = true
				}
			}
			if k := listed(n); k > 3 {
				c.lists = append(c.lists, fmt.Sprintf("%s %s: %d", rel, where, k))
			}
			return true
		})
	}
}

// operation is the operation of NFSv4 that a name of a constant or of a type belongs to.
func operation(name string) string {
	if op, ok := strings.CutPrefix(name, "OP_"); ok && constant.MatchString(name) {
		return op
	}
	if m := message.FindStringSubmatch(name); m != nil && strings.HasSuffix(m[1], "4") {
		return strings.TrimSuffix(m[1], "4")
	}
	return ""
}

// listed is how many procedures and operations one statement or literal names.
func listed(n ast.Node) int {
	names := map[string]bool{}
	look := func(e ast.Node, numbers bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectorExpr:
				if constant.MatchString(x.Sel.Name) || message.MatchString(x.Sel.Name) {
					names[x.Sel.Name] = true
				}
			case *ast.BasicLit:
				if numbers && x.Kind == token.INT {
					names[x.Value] = true
				}
			}
			return true
		})
	}
	cases := func(b *ast.BlockStmt, numbers bool) {
		for _, s := range b.List {
			if x, ok := s.(*ast.CaseClause); ok {
				for _, e := range x.List {
					look(e, numbers)
				}
			}
		}
	}
	switch x := n.(type) {
	case *ast.SwitchStmt:
		cases(x.Body, byNumber.MatchString(last(x.Tag)))
	case *ast.TypeSwitchStmt:
		cases(x.Body, false)
	case *ast.CompositeLit:
		for _, e := range x.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if ok {
				look(kv.Key, false)
			} else if _, plain := e.(*ast.SelectorExpr); plain {
				look(e, false)
			}
		}
	}
	return len(names)
}

// last is the last name of an expression.
func last(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.CallExpr:
		if len(x.Args) == 1 {
			return last(x.Args[0])
		}
	}
	return ""
}
