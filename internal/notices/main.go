// Notices writes the licences of what the programs contain of others: file NOTICE at the root of the repository. It fails for a licence that is not known to be
// permissive.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../NOTICE

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "notices: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name the file to write")
	}
	root, err := filepath.Abs(filepath.Dir(args[0]))
	if err != nil {
		return err
	}
	modules, err := list(root)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := write(&b, modules); err != nil {
		return err
	}
	return os.WriteFile(args[0], b.Bytes(), 0o666)
}
