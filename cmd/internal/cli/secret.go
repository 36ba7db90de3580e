package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// StateHome is where programs keep their state (XDG Base Directory Specification, 0.8).
func StateHome() (string, error) {
	if home := os.Getenv("XDG_STATE_HOME"); home != "" {
		return home, nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w: set it, or XDG_STATE_HOME", err)
	}
	return filepath.Join(user, ".local", "state"), nil
}

// Secret is a key of this user for one purpose, in a file below StateHome. It is made when it is needed first, and shows
// later that a file was written by this user and not changed.
func Secret(program, file string) ([]byte, error) {
	home, err := StateHome()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(home, program, file)
	const size = 32
	key, err := os.ReadFile(name)
	switch {
	case err == nil && len(key) == size:
		return key, nil
	case err == nil:
		return nil, fmt.Errorf("%s is not a key: remove it", name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	key = make([]byte, size)
	_, _ = rand.Read(key) // cannot fail (crypto/rand)
	// Of two runs that make it at the same time, the first counts.
	temp, err := os.CreateTemp(filepath.Dir(name), file+"-*")
	if err != nil {
		return nil, err
	}
	_, err = temp.Write(key)
	err = errors.Join(err, temp.Close())
	if err == nil {
		if err = os.Link(temp.Name(), name); errors.Is(err, fs.ErrExist) {
			key, err = os.ReadFile(name)
		}
	}
	err = errors.Join(err, os.Remove(temp.Name()))
	if err == nil && len(key) != size {
		err = fmt.Errorf("%s is not a key: remove it", name)
	}
	return key, err
}
