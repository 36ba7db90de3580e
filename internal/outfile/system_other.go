//go:build !unix

package outfile

import (
	"errors"
	"io/fs"
	"os"
)

const noFollow = 0

func descriptor(string) (fd int, ok bool) { return 0, false }

func descriptorTarget(string, int) (*target, error) { return nil, errors.ErrUnsupported }

func duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }

func mayFollow(*target, fs.FileInfo) error { return nil }

func keepOwner(*os.File, fs.FileInfo) {}

// unlinkOpen leaves the file: what is open has its name here.
func unlinkOpen(string) error { return nil }

func renameExclusive(string, string) error { return errors.ErrUnsupported }
