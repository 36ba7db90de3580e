package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Files are what one command reads and writes. All methods are safe for
// concurrent use; a nil *Files knows no inputs and compares nothing.
type Files struct {
	mu      sync.Mutex
	inputs  []known
	outputs []known
	printed *known // standard output, to which a command may write text besides its files
}

// known is a file that was named.
type known struct {
	name string
	info fs.FileInfo // nil if there was no such file
	dir  fs.FileInfo // of its directory; nil for a stream
	base string      // its name there
	file *File       // of an output
	fd   int         // that it was named by, and one more; 0: it was not
}

// Conflict says that a file has two roles which exclude each other.
type Conflict struct {
	Name  string // of the output
	Other string // of the input, or of the other output
	Both  bool   // the other one is an output, too
}

func (e *Conflict) Error() string {
	switch {
	case e.Both && e.Name == e.Other:
		return fmt.Sprintf("%s would hold two outputs: each needs its own file", e.Name)
	case e.Both:
		return fmt.Sprintf("%s and %s are the same file: each output needs its own", e.Other, e.Name)
	case e.Name == e.Other:
		return fmt.Sprintf("%s is read and cannot be written", e.Name)
	}
	return fmt.Sprintf("%s is the same file as %s, which is read: it cannot be written", e.Name, e.Other)
}

// Reads notes files that are read. Names that do not exist are noted, too: they
// may appear. A name "-" has to be given to ReadsStream instead.
func (s *Files) Reads(names ...string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if name == "" {
			continue
		}
		k := known{name: name}
		k.info, _ = os.Stat(name)
		dir, base := split(name)
		k.dir, _ = os.Stat(dir)
		k.base = base
		s.inputs = append(s.inputs, k)
	}
}

// ReadsStream notes that a stream is read, under a name for messages. Only one
// that is an open file matters.
func (s *Files) ReadsStream(name string, stream any) {
	if s == nil {
		return
	}
	if info := statOf(stream); info != nil {
		s.mu.Lock()
		s.inputs = append(s.inputs, known{name: name, info: info})
		s.mu.Unlock()
	}
}

// CheckStream is an error (*Conflict) if a stream that is to be written, such as
// standard output, is a file that is read.
func (s *Files) CheckStream(name string, stream any) error {
	info := statOf(stream)
	if s == nil || info == nil {
		return nil
	}
	return s.conflict(&known{name: name, info: info, fd: 2})
}

// Prints notes that the command may write text to standard output, which a shell may have directed into a file: no output that is
// named as a file becomes the same one, or the text would be lost.
func (s *Files) Prints(stream any) {
	if info := statOf(stream); s != nil && info != nil {
		s.mu.Lock()
		s.printed = &known{name: standardOutput, info: info}
		s.mu.Unlock()
	}
}

const standardOutput = "standard output"

// TakeStdout is CheckStream for an output that has no other name, and notes it: there cannot be a second one.
func (s *Files) TakeStdout(stream any) error {
	return s.add(&known{name: standardOutput, info: statOf(stream), fd: 2})
}

// CheckInfo is an error (*Conflict) if a file that is to be replaced is one that
// is read, or written elsewhere.
func (s *Files) CheckInfo(name string, info fs.FileInfo) error {
	if info == nil {
		return nil
	}
	return s.conflict(&known{name: name, info: info})
}

func statOf(stream any) fs.FileInfo {
	f, ok := stream.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	return info
}

// Check is an error (*Conflict) if a file that is to be written is one that is
// read, or one that is written already. Create and Stream check by themselves:
// Check is for commands that write later and want to fail early.
func (s *Files) Check(name string) error {
	t, err := resolve(name)
	if err != nil {
		return err
	}
	return s.conflict(t.known(name, nil))
}

// conflict compares a file with all others.
func (s *Files) conflict(k *known) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.inputs {
		in := &s.inputs[i]
		if k.same(in) || k.info != nil && k.info.Mode().IsRegular() && nowIs(in, k.info) {
			return &Conflict{Name: k.name, Other: in.name}
		}
	}
	for i := range s.outputs {
		if out := &s.outputs[i]; (k.file == nil || out.file != k.file) && k.same(out) {
			return &Conflict{Name: k.name, Other: out.name, Both: true}
		}
	}
	if s.printed != nil && k.fd == 0 && k.info != nil && k.info.Mode().IsRegular() && os.SameFile(k.info, s.printed.info) {
		return &Conflict{Name: k.name, Other: s.printed.name, Both: true}
	}
	return nil
}

// nowIs reports whether the name of an input has come to be a file since it was
// noted: the input may have been followed from one file to the next.
func nowIs(in *known, info fs.FileInfo) bool {
	if in.dir == nil {
		return false
	}
	now, err := os.Stat(in.name)
	return err == nil && os.SameFile(now, info)
}

// same reports whether both are one file, one name or one open descriptor. Only regular files can be harmed; what goes into a pipe
// from two places is mixed up.
func (k *known) same(o *known) bool {
	if k.fd != 0 && k.fd == o.fd {
		return true
	}
	if k.info != nil && !k.info.Mode().IsRegular() && k.info.Mode()&fs.ModeNamedPipe == 0 {
		return false
	}
	if k.info != nil && o.info != nil && os.SameFile(k.info, o.info) {
		return true
	}
	return k.dir != nil && o.dir != nil && k.base == o.base && os.SameFile(k.dir, o.dir)
}

// add notes an output unless it is in conflict with another file.
func (s *Files) add(k *known) error {
	if s == nil {
		return nil
	}
	if err := s.conflict(k); err != nil {
		return err
	}
	s.mu.Lock()
	s.outputs = append(s.outputs, *k)
	s.mu.Unlock()
	return nil
}

// settle records which file an output has become: the inode of the one that it replaced may soon be reused.
func (s *Files) settle(f *File, info fs.FileInfo) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.outputs {
		if s.outputs[i].file == f {
			s.outputs[i].info = info
		}
	}
}

// forget takes an output off the list.
func (s *Files) forget(f *File) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.outputs) - 1; i >= 0; i-- {
		if s.outputs[i].file == f {
			s.outputs = append(s.outputs[:i], s.outputs[i+1:]...)
			return
		}
	}
}

// target is what a name stands for.
type target struct {
	dir  string      // with the separator at its end; empty is the working directory
	base string      // of the final file
	info fs.FileInfo // nil: there is no such file yet
	fd   int         // an open descriptor that the name stands for; -1 if none
}

func (t *target) path() string { return t.dir + t.base }

// regular reports whether the target is, or is to be, an ordinary file.
func (t *target) regular() bool { return t.fd < 0 && (t.info == nil || t.info.Mode().IsRegular()) }

func (t *target) known(name string, f *File) *known {
	k := &known{name: name, info: t.info, base: t.base, file: f}
	if t.fd < 0 {
		k.dir, _ = os.Stat(t.folder())
	} else {
		k.fd = t.fd + 1
	}
	return k
}

// folder is the directory of the target.
func (t *target) folder() string {
	if t.dir == "" {
		return "."
	}
	return t.dir
}

// IsStdout reports whether a name stands for standard output: /dev/stdout, /dev/fd/1, or a link to one of them.
func IsStdout(name string) bool {
	t, err := resolve(name)
	return err == nil && t.fd == 1
}

// split cuts a name at its last separator and changes nothing else: a directory
// "a/.." is not "." if a is a symbolic link.
func split(name string) (dir, base string) {
	dir, base = filepath.Split(name)
	if dir == "" {
		dir = "." + string(filepath.Separator)
	}
	return dir, base
}

// maxLinks bounds the symbolic links that are followed, as in the kernel.
const maxLinks = 40

// resolve finds what a name stands for. It follows symbolic links of the last component itself, so that the
// file after them can be replaced; those before it the system follows.
func resolve(name string) (*target, error) {
	path := name
	for range maxLinks {
		if fd, ok := descriptor(path); ok {
			return descriptorTarget(name, fd)
		}
		dir, base := filepath.Split(path)
		t := &target{dir: dir, base: base, fd: -1}
		if base == "" {
			return nil, &fs.PathError{Op: "write", Path: name, Err: errors.New("is the name of a directory")}
		}
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return t, nil
		case err != nil:
			return nil, err
		case info.IsDir():
			return nil, &fs.PathError{Op: "write", Path: name, Err: errors.New("is a directory")}
		case info.Mode()&fs.ModeSocket != 0:
			return nil, &fs.PathError{Op: "write", Path: name, Err: errors.New("is a socket")}
		case info.Mode()&fs.ModeSymlink == 0:
			t.info = info
			return t, nil
		}
		if err := mayFollow(t, info); err != nil {
			return nil, &fs.PathError{Op: "write", Path: name, Err: err}
		}
		to, err := os.Readlink(path)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(to) {
			path = to
		} else {
			path = dir + to
		}
	}
	return nil, &fs.PathError{Op: "write", Path: name, Err: errors.New("too many symbolic links")}
}
