package outfile

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// pending is what has to be removed before the process ends.
var pending = &temporary{files: make(map[*File]string), others: make(map[*func() error]struct{})}

type temporary struct {
	mu     sync.Mutex
	files  map[*File]string
	others map[*func() error]struct{}
	over   bool
}

// errEnding says that the process is about to end.
var errEnding = errors.New("the program is being ended")

// begin makes a temporary file.
func (t *temporary) begin(f *File, temp string, open func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return errEnding
	}
	if err := open(); err != nil {
		return err
	}
	f.temp = temp
	t.files[f] = temp
	return nil
}

// end calls do, which renames or removes the file. It reports whether that was
// still possible: after Cleanup the file is gone.
func (t *temporary) end(f *File, do func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	do()
	delete(t.files, f)
	return true
}

// Cleanup removes all temporary files and calls what Temporary was given. It is
// for programs that a signal ends, right before they do: nothing can be created
// or committed afterwards.
func Cleanup() {
	t := pending
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.over = true
	for _, name := range t.files {
		_ = os.Remove(name)
	}
	others := t.others
	t.mu.Unlock()
	for f := range others {
		for range tries {
			if (*f)() == nil {
				break
			}
		}
	}
}

// Temporary calls make, which makes something that is not to stay, and has Cleanup
// call remove, until the function that it returns is called. Commands call that
// after they have removed the thing themselves. Cleanup calls remove while others
// may still be at work, and again if it returns an error.
func Temporary(make func() error, remove func() error) (done func(), err error) {
	t := pending
	p := &remove
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil, errEnding
	}
	if err := make(); err != nil {
		return nil, err
	}
	t.others[p] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.over {
			delete(t.others, p)
		}
	}, nil
}

// tries bounds the attempts to remove a directory that is still being written to.
const tries = 20

// TempDir makes a directory for private files in the system's temporary directory. remove deletes it with all
// that is in it.
func TempDir(prefix string) (dir string, remove func() error, err error) {
	done, err := Temporary(
		func() (err error) { dir, err = os.MkdirTemp("", prefix); return err },
		func() error { return os.RemoveAll(dir) })
	if err != nil {
		return "", nil, fmt.Errorf("there can be no temporary files (see TMPDIR): %w", err)
	}
	return dir, func() error {
		defer done()
		return os.RemoveAll(dir)
	}, nil
}

// Scratch makes a file without a name in a directory, for what does not fit in
// memory. Its room is free again when it is closed, however the process ends.
func Scratch(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".scratch-*.tmp")
	if err != nil {
		return nil, err
	}
	if err := unlinkOpen(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}
