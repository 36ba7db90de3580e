// Command xdrgen turns protocols in XDR language into Go; see README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	pkg := flag.String("package", "", "name of the Go package")
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if err := run(*pkg, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "xdrgen:", err)
		os.Exit(1)
	}
}

func run(pkg, out string, names []string) error {
	if pkg == "" || out == "" || len(names) == 0 {
		return errors.New("usage: xdrgen -package NAME -o FILE.go FILE.x…")
	}
	b, err := Generate(pkg, ".", names)
	if err != nil {
		return err
	}
	return os.WriteFile(out, b, 0o644)
}

// Generate returns the Go source for the .x files, which are relative to dir.
func Generate(pkg, dir string, names []string) (out []byte, err error) {
	defer func() {
		if e := recover(); e != nil {
			se, ok := e.(syntaxError)
			if !ok {
				panic(e)
			}
			err = se.error
		}
	}()
	var own, imported []*file
	seen := map[string]bool{}
	for _, n := range names {
		f, err := read(dir, n, "")
		if err != nil {
			return nil, err
		}
		own = append(own, f)
		for _, i := range f.imports {
			if seen[i.path+" "+i.file] {
				continue
			}
			seen[i.path+" "+i.file] = true
			f, err := read(dir, filepath.Join(filepath.Dir(n), i.file), i.path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", i.pos, err)
			}
			imported = append(imported, f)
		}
	}
	return newModel(pkg, own, imported).emit(names)
}

func read(dir, name, pkg string) (*file, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return parse(name, string(text), pkg)
}
