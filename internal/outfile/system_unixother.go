//go:build unix && !linux

package outfile

import "errors"

func renameExclusive(string, string) error { return errors.ErrUnsupported }
