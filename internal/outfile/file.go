package outfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a file that is written. It ends with either Commit or Discard;
// Discard after Commit does nothing, so that it can be deferred.
type File struct {
	f      *os.File
	files  *Files
	name   string      // as it was asked for
	path   string      // that Commit gives; empty for a part of a directory
	temp   string      // where it is until then; empty if it is written directly
	old    fs.FileInfo // of the file that is replaced
	err    error       // of a write: what is lost stays lost
	info   fs.FileInfo // as it was closed
	closed bool        // but still without its name
	ended  bool
	direct bool
	hidden bool // from all but its owner
}

// Create begins a file that gets its name at Commit. Errors are *Conflict,
// *fs.PathError and those of the system.
func (s *Files) Create(name string) (*File, error) {
	t, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if !t.regular() {
		return s.direct(t, name)
	}
	f := &File{files: s, name: name, path: t.path()}
	if err := s.add(t.known(name, f)); err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o666)
	if t.info != nil {
		if f.old, err = writable(t); err != nil {
			s.forget(f)
			return nil, err
		}
		mode = 0o600 // until Commit
	}
	if err := f.begin(t.dir, t.base, mode); err != nil {
		s.forget(f)
		if e, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w: make the directory %s first", name, e.Err, filepath.Clean(t.dir))
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			err = fmt.Errorf("%w: %s is written as a temporary file beside it, which the directory does not allow; write to another directory", err, name)
		}
		return nil, err
	}
	return f, nil
}

// writable makes sure that a file could be written in place: otherwise it would
// be replaced though its mode forbids to change it.
func writable(t *target) (fs.FileInfo, error) {
	f, err := os.OpenFile(t.path(), os.O_WRONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "write", Path: t.path(), Err: errors.New("is no longer a file")}
	}
	return info, nil
}

// CreateIn begins a file in a directory, which must exist. Its name is given at the end: see CommitNew.
func (s *Files) CreateIn(dir string) (*File, error) {
	f := &File{files: s, name: dir}
	if err := f.begin(dir+string(filepath.Separator), "part", 0o666); err != nil {
		return nil, err
	}
	return f, nil
}

// maxName is the length in bytes of a file's name that all usual file systems
// take.
const maxName = 255

// begin makes the temporary file.
func (f *File) begin(dir, base string, mode fs.FileMode) error {
	for range 100 {
		var random [8]byte
		_, _ = rand.Read(random[:]) // it does not fail
		end := "." + hex.EncodeToString(random[:]) + ".tmp"
		temp := dir + "." + base[:min(len(base), maxName-1-len(end))] + end
		err := pending.begin(f, temp, func() (err error) {
			f.f, err = os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, mode)
			return err
		})
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return &fs.PathError{Op: "create", Path: dir, Err: errors.New("no free name for a temporary file")}
}

// Stream opens a file that others may read while it is written. It is there at
// once; what it held before is gone.
func (s *Files) Stream(name string) (*File, error) {
	for range 3 {
		t, err := resolve(name)
		if err != nil {
			return nil, err
		}
		if !t.regular() {
			return s.direct(t, name)
		}
		flag := os.O_WRONLY | noFollow
		if t.info == nil {
			flag |= os.O_CREATE | os.O_EXCL
		}
		// An input may have taken the name: nothing is cut before it is known
		// what was opened.
		if err := s.conflict(t.known(name, nil)); err != nil {
			return nil, err
		}
		o, err := os.OpenFile(t.path(), flag, 0o666)
		if t.info == nil && errors.Is(err, fs.ErrExist) || t.info != nil && errors.Is(err, fs.ErrNotExist) {
			continue // it came or went meanwhile
		}
		if err != nil {
			return nil, err
		}
		f := &File{f: o, files: s, name: name, path: t.path(), direct: true}
		if err := f.take(t); err != nil {
			return nil, errors.Join(err, o.Close())
		}
		return f, nil
	}
	return nil, &fs.PathError{Op: "write", Path: name, Err: errors.New("it comes and goes")}
}

// take makes sure that the file that was opened may be written, and empties it.
func (f *File) take(t *target) error {
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: f.name, Err: errors.New("is no longer a file")}
	}
	t.info, f.old = info, info
	if err := f.files.add(t.known(f.name, f)); err != nil {
		return err
	}
	if err := f.f.Truncate(0); err != nil {
		f.files.forget(f)
		return err
	}
	return nil
}

// direct opens what cannot be replaced: a FIFO, a device, an open descriptor.
func (s *Files) direct(t *target, name string) (*File, error) {
	f := &File{files: s, name: name, direct: true}
	var err error
	if t.fd >= 0 {
		f.f, err = duplicate(t.fd, name)
	} else {
		f.f, err = os.OpenFile(t.path(), os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.f.Stat()
	if err == nil {
		k := &known{name: name, info: info, file: f}
		if t.fd >= 0 {
			k.fd = t.fd + 1
		}
		err = s.add(k)
	}
	if err != nil {
		return nil, errors.Join(err, f.f.Close())
	}
	return f, nil
}

// Name is the name that the file was asked for with.
func (f *File) Name() string { return f.name }

// Write writes. After an error, Commit fails, too.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.f.Write(b)
	if e, ok := errors.AsType[*fs.PathError](err); ok && f.name != "" {
		e.Path = f.name // the temporary file is gone by the time that this is read
	}
	if err != nil && f.err == nil {
		f.err = err
	}
	return n, err
}

// Truncate cuts a streamed file after n bytes, since a full disk may have left half of a record. Anything but
// a regular file stays unchanged.
func (f *File) Truncate(n int64) error {
	info, err := f.f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() <= n || f.path == "" {
		return err
	}
	return f.f.Truncate(n)
}

// errDiscarded says that Commit came too late.
var errDiscarded = errors.New("the file was given up")

// Commit ends the file and gives it its name. If it fails, the name is what it
// was before.
func (f *File) Commit() error {
	switch {
	case f.direct && f.ended:
		return f.err // Close has done it
	case f.direct:
		f.ended = true
		f.err = errors.Join(f.err, f.f.Close())
		return f.err
	case f.ended:
		return errDiscarded
	}
	if f.path == "" {
		f.Discard()
		return errors.New("a file of a directory needs CommitNew")
	}
	return f.end(func() error {
		// What the name stands for may have changed.
		k := &known{name: f.name, file: f}
		if info, err := os.Lstat(f.path); err == nil {
			k.info = info
			if err := f.files.conflict(k); err != nil {
				return err
			}
		}
		return os.Rename(f.temp, f.path)
	})
}

// CommitNew ends a file of CreateIn with the first name that is free: name is
// asked for 0, 1, … below most. Nothing is ever replaced.
func (f *File) CommitNew(name func(n int) string, most int) error {
	if f.ended {
		return errDiscarded
	}
	return f.end(func() error {
		for n := range most {
			err := renameNew(f.temp, name(n))
			if !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		return fmt.Errorf("%s: no free name", f.name)
	})
}

// Hide makes a file that nobody but its owner may read, also if it replaces one that others may.
func (f *File) Hide() error {
	if f.direct {
		return nil
	}
	f.hidden = true
	return f.f.Chmod(onlyOwner)
}

const onlyOwner = 0o600

// mode returns the permissions that the finished file gets.
func (f *File) mode() fs.FileMode {
	if f.hidden {
		return onlyOwner
	}
	return f.old.Mode().Perm()
}

// Close ends the writing and leaves the file without its name, for Commit or
// Discard to come: many files can wait for each other that way. A File that is
// streamed is ended by it.
func (f *File) Close() error {
	if f.direct {
		return f.Commit()
	}
	if f.closed {
		return f.err
	}
	f.closed = true
	err := f.err
	switch {
	case err != nil:
	case f.old != nil:
		keepOwner(f.f, f.old)
		err = f.f.Chmod(f.mode())
	case f.hidden:
		err = f.f.Chmod(f.mode())
	}
	if err == nil {
		// Some file systems know only now that they have no room; and a name
		// must not survive a crash without its contents.
		if err = f.f.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
	}
	f.info, _ = f.f.Stat()
	f.err = errors.Join(err, f.f.Close())
	return f.err
}

// end closes the temporary file and calls name, which renames it.
func (f *File) end(name func() error) error {
	err := f.Close()
	f.ended = true
	ending := !pending.end(f, func() {
		if err == nil {
			err = name()
		}
		if err != nil {
			_ = os.Remove(f.temp)
		}
	})
	if ending {
		return errors.Join(err, errEnding)
	}
	if err == nil {
		f.files.settle(f, f.info)
	} else {
		f.files.forget(f)
	}
	return err
}

// Discard gives a file up: it is removed if it has no name yet. A stream is only
// closed.
func (f *File) Discard() {
	if f == nil || f.ended {
		return
	}
	f.ended = true
	if !f.closed {
		_ = f.f.Close()
	}
	if f.direct {
		return
	}
	f.files.forget(f)
	pending.end(f, func() { _ = os.Remove(f.temp) })
}

// Reopen goes on at the end of a stream that Commit has closed. It has to be the
// same file still.
func (f *File) Reopen() error {
	if !f.ended || !f.direct || f.path == "" {
		return errors.New("not a stream that was closed")
	}
	o, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|noFollow, 0)
	if err != nil {
		return err
	}
	info, err := o.Stat()
	if err == nil && !os.SameFile(info, f.old) {
		err = &fs.PathError{Op: "write", Path: f.name, Err: errors.New("is no longer the file that was written")}
	}
	if err != nil {
		return errors.Join(err, o.Close())
	}
	f.f, f.ended = o, false
	return nil
}

// Remove deletes a stream that was closed, if it is there still and is the file
// that was written.
func (f *File) Remove() error {
	if f.path == "" || f.old == nil {
		return nil
	}
	f.files.forget(f)
	info, err := os.Lstat(f.path)
	if err != nil || !os.SameFile(info, f.old) {
		return nil //nolint:nilerr // it is gone, or somebody else's
	}
	return os.Remove(f.path)
}

// Forget lets other outputs have the name: the caller sees to it that they are
// not mixed up. What writes files without end has to do that.
func (f *File) Forget() { f.files.forget(f) }
