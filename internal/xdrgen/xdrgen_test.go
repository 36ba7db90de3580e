package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDrift runs the generator as each go:generate line of the module says,
// in memory, and compares its output with what is checked in.
func TestDrift(t *testing.T) {
	root := filepath.Join("..", "..")
	found := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, line := range strings.Split(string(text), "\n") {
			args, ok := strings.CutPrefix(line, "//go:generate go run github.com/rpcrdma/toolkit/internal/xdrgen ")
			if !ok {
				continue
			}
			w := strings.Fields(args)
			if len(w) < 5 || w[0] != "-package" || w[2] != "-o" {
				t.Errorf("%s: cannot read %q", name, line)
				continue
			}
			found++
			dir := filepath.Dir(name)
			want, err := Generate(w[1], dir, w[4:])
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			have, err := os.ReadFile(filepath.Join(dir, w[3]))
			if err != nil {
				return err
			}
			if !bytes.Equal(have, want) {
				t.Errorf("%s is out of date: run go generate in its directory", filepath.Join(dir, w[3]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 8 {
		t.Errorf("only %d go:generate lines found", found)
	}
}

func generate(t *testing.T, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.x"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := Generate("p", dir, []string{"p.x"})
	return string(out), err
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no definition", "foo;", `p.x:1: want a definition, have "foo"`},
		{"line number", "const A = 1;\n\n/* a\nb */\nfoo;", "p.x:5:"},
		{"end of file", "struct s { int a;", "want a name"},
		{"open comment", "/* ", "comment does not end"},
		{"bad character", "const A = 1 @", `unexpected character '@'`},
		{"bad number", "const A = 0xzz;", `"0xzz" is not a number`},
		{"bad value", "const A = ;", "want a number or a name"},
		{"unknown constant", "typedef int a[N];", "N is not a constant"},
		{"constant loop", "const A = B; const B = A; typedef int a[A];", "refers to itself"},
		{"unknown type", "struct s { foo a; };", "type foo is not defined"},
		{"not a type", "const A = 1; struct s { A a; };", "A is not a type"},
		{"defined twice", "const A = 1; enum e { A = 2 };", "A is already defined at p.x:1"},
		{"same Go name", "struct foo_bar { int a; }; struct FooBar { int a; };", "same Go name FooBar"},
		{"same Go member", "struct s { int a_b; int aB; };", "Go name AB"},
		{"recursion", "struct s { s a; };", "contains itself"},
		{"recursion by way of others", "struct a { b x<>; }; union b switch (int n) { case 1: c y; }; typedef a c;", "contains itself"},
		{"pointer in the middle", "struct s { s *next; int a; };", "contains itself"},
		{"list without a pointer", "struct s { int a; s *next; }; struct t { s x; };", "s is a linked list and needs a *"},
		{"list as an argument", "struct s { int a; s *next; }; program P { version V { void F(s) = 1; } = 1; } = 1;", "needs a *"},
		{"nested struct", "struct s { struct { int a; } b; };", "nested struct is not supported"},
		{"float", "struct s { double d; };", "double is not supported"},
		{"opaque without length", "struct s { opaque o; };", "opaque o needs a length"},
		{"fixed string", "struct s { string x[4]; };", "variable length"},
		{"zero length", "struct s { int x[0]; };", "length 0 of x out of range"},
		{"huge length", "struct s { int x[100000]; };", "out of range"},
		{"array of pointers", "struct s { int *x<>; };", "array of optional items"},
		{"nested optional", "typedef int *p; struct s { p x<>; };", "only supported as a member"},
		{"void member", "struct s { void; };", "void member"},
		{"void typedef", "typedef void;", "typedef of void"},
		{"discriminant", "union u switch (hyper n) { case 1: void; };", "bad type of a discriminant"},
		{"discriminant array", "union u switch (int n<>) { case 1: void; };", "bad discriminant"},
		{"no case", "union u switch (int n) { int a; };", "want case or default"},
		{"case of a bool", "union u switch (bool n) { case 2: void; };", "case 2 of a bool"},
		{"arms of one name", "union u switch (int n) { case 1: int a; case 2: hyper a; };", "arms named a differ"},
		{"arm and discriminant", "union u switch (int n) { case 1: int n; };", "name of the discriminant"},
		{"enum out of range", "enum e { A = 0x100000000 };", "out of range"},
		{"unknown pragma", "%foo\nconst A = 1;", `unknown pragma "foo"`},
		{"pragma out of place", "const A = \n%max 1\n1;", "pragma out of place"},
		{"pragma does not fit", "struct s {\n%data\nint a;\n};", "%data does not fit a"},
		{"pragma on a struct", "%status\nstruct s { int a; };", "%status does not fit s"},
		{"typedef pragma", "%max 3\ntypedef int a;", "%max does not fit a"},
		{"operations of nothing", "%operations t s\nenum e { OP_A = 1 };", "%operations needs the table"},
		{"operations without a status", "%operations t s OP_A\nenum e { OP_A = 1 };", "no struct s"},
		{"operation without arguments", "struct s { int a; };\n%operations t s OP_Z\nenum e { OP_A = 1, OP_Z = 2 };", "OP_A has either"},
		{"operation with arguments too many", "struct s { int a; }; struct A4args { int a; };\n%operations t s OP_Z OP_A\nenum e { OP_A = 1, OP_Z = 2 };", "OP_A has either"},
		{"operations without the last", "struct s { int a; }; struct A4args { int a; };\n%operations t s OP_Z\nenum e { OP_A = 1 };", "no member OP_Z"},
		{"operations on a struct", "%operations t s OP_A\nstruct s { int a; };", "does not fit s"},
		{"time of three", "%time\nstruct s { int a; int b; int c; };", "%time needs a struct of two integers"},
		{"no such prefix", "struct s {\n%flags NO_*\nint a;\n};", "no constant begins with NO_"},
		{"no such flag", "struct s {\n%flags NO\nint a;\n};", "NO is neither a constant nor an enum"},
		{"import", "%import x y.x\n", "p.x:1:"},
		{"import arguments", "%import x\n", "bad arguments of %import"},
		{"extern size", "%extern a A x\n", `bad size "x"`},
		{"procedure twice", "program P { version V { void F(void) = 1; void G(void) = 1; } = 1; } = 1;", "F have the same number"},
		{"procedure number", "program P { version V { void F(void) = 5000; } = 1; } = 1;", "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := generate(t, c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if err := run("", "", nil); err == nil {
		t.Error("no error without arguments")
	}
	if _, err := Generate("p", t.TempDir(), []string{"none.x"}); err == nil {
		t.Error("no error without a file")
	}
}

func TestOutput(t *testing.T) {
	out, err := generate(t, `
// The answer.
//
// And more.
const ANSWER = 42;
struct empty { };
struct unsigned_things { unsigned a; unsigned int b; u_long c; unsigned long d; };
%name other
program LATE { version LATE_V1 { void LATE_NULL(void) = 0; } = 1; } = 0x20000001;
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"// Code generated by xdrgen from p.x. DO NOT EDIT.\n\npackage p\n",
		"// The answer.\n\t//\n\t// And more.\n\tANSWER ",
		"type Empty struct {\n}",
		"type UnsignedThings struct {\n\tA uint32\n\tB uint32\n\tC uint32\n\tD uint32\n}",
		`{Name: "other", Number: LATE, Version: LATE_V1, `,
		`LATE_NULL: {Name: "NULL", Number: LATE_NULL, NewArgs: xdr.NewVoid, NewResult: xdr.NewVoid}`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.go")
	name := filepath.Join("sample", "sample.x")
	if err := run("sample", out, []string{name}); err != nil {
		t.Fatal(err)
	}
	have, _ := os.ReadFile(out)
	want, _ := os.ReadFile(filepath.Join("sample", "sample_gen.go"))
	if !bytes.Equal(have, want) {
		t.Error("output differs from what Generate returns")
	}
}

// The parser sees only files of this repository, but a typing error should
// not look like a crash of the tool.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("sample", "sample.x"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("/*/")
	f.Add("union u switch (bool b) { case TRUE: struct s x; default: void; };")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parse("p.x", text, ""); err != nil && err.Error() == "" {
			t.Fatal("error without a text")
		}
	})
}
