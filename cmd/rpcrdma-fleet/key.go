package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

// resumeKey is the flag --resume-key.
type resumeKey struct{ file string }

func (k *resumeKey) flag(f *pflag.FlagSet) {
	f.StringVar(&k.file, "resume-key", "", "`file` with a secret that signs what is kept in the store to go on with a unit; for stores that others can write to")
}

// Sizes of keys, in bytes.
const (
	leastKey = 16
	mostKey  = 4096
)

func (k *resumeKey) read() ([]byte, error) {
	if k.file == "" {
		return nil, nil
	}
	f, err := os.Open(k.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostKey+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > mostKey:
		return nil, fmt.Errorf("%s: a key of more than %d bytes", k.file, mostKey)
	case len(b) < leastKey:
		return nil, errors.New(k.file + ": a key has at least 16 bytes, for example of head -c 32 /dev/urandom")
	}
	return b, nil
}
