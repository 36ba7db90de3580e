package outfile

import (
	"errors"
	"io/fs"
	"os"
)

// renameNew renames a file unless the new name exists (fs.ErrExist).
func renameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// A file system without hard links.
	if err = renameExclusive(from, to); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// One without either: between the look and the renaming, another program
	// could take the name.
	if _, err := os.Lstat(to); err == nil {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}
