package extract

import (
	"bufio"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const (
	manifestName = "manifest.ndjson"
	byHandle     = "by-handle"
	// partial is how the name of the directory begins that holds the files until
	// their names are known.
	partial = ".partial-"
)

// ErrForeign means that a directory holds other files. Peers choose the names of extracted files, which must
// not collide with files of the user.
var ErrForeign = errors.New("the directory is not empty and was not made by an extraction (it has no " + manifestName + "): name a new one")

// New makes an Extractor that writes below dir, which is made if it does not
// exist; otherwise it has to be empty, or the directory of an earlier extraction,
// whose files are replaced (ErrForeign). The Decoder must keep data
// (transaction.Options.KeepData).
//
// Nothing has its name before Close. Nothing is written outside of dir, through
// symbolic links in it either.
func New(dir string, opt Options) (*Extractor, error) {
	_, err := os.Stat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	x := &Extractor{
		dir: dir, outputs: opt.Files, files: make(map[fileKey]*file),
		holes: uint64(max(opt.Holes, 0)), given: opt.Holes > 0,
	}
	if x.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	if err = x.begin(); err != nil {
		x.root.Close()
		if made {
			_ = os.Remove(dir)
		}
		return nil, err
	}
	return x, nil
}

// begin looks at the directory and makes what is needed until the end.
func (x *Extractor) begin() error {
	entries, err := fs.ReadDir(x.root.FS(), ".")
	if err != nil {
		return err
	}
	ours := true
	for _, e := range entries {
		if e.Name() == manifestName && e.Type().IsRegular() {
			ours = true
			break
		}
		if !strings.HasPrefix(e.Name(), partial) { // left by one that was killed
			ours = false
		}
	}
	if !ours {
		return fmt.Errorf("%s: %w", x.dir, ErrForeign)
	}
	if x.manifest, err = x.outputs.Create(filepath.Join(x.dir, manifestName)); err != nil {
		return err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // it does not fail
	x.temp = partial + hex.EncodeToString(random[:])
	root, temp := x.root, x.temp
	x.done, err = outfile.Temporary(
		func() error { return root.Mkdir(temp, 0o700) },
		func() error { return root.RemoveAll(temp) })
	if err != nil {
		x.manifest.Discard()
	}
	return err
}

// Discard removes what has no name yet. After Close it does nothing.
func (x *Extractor) Discard() {
	if x == nil || x.root == nil {
		return
	}
	_ = x.closeStores()
	_ = x.root.RemoveAll(x.temp)
	x.manifest.Discard()
	x.done()
	_ = x.root.Close()
	x.root = nil
	_ = os.Remove(x.dir) // if it is empty
}

// Close gives the files their names and writes the manifest. names tells the
// paths. It returns the number of files.
func (x *Extractor) Close(names *rpc.Names) (int, error) {
	defer x.Discard()
	if err := x.closeStores(); err != nil {
		return 0, err
	}
	w := bufio.NewWriter(x.manifest)
	taken := map[string]bool{manifestName: true, x.temp: true, byHandle: true}
	n := 0
	for i, f := range x.order {
		if !f.store.exists {
			continue // only its size was seen
		}
		e, err := x.place(f, i, names.At(f.server).Path([]byte(f.handle)), taken)
		if err == nil {
			_, err = w.Write(e.appendJSON(nil))
		}
		if err != nil {
			return n, err
		}
		n++
	}
	err := errors.Join(w.Flush(), x.root.RemoveAll(x.temp))
	if err == nil {
		err = x.manifest.Commit()
	}
	if err == nil && x.lost > 0 {
		err = fmt.Errorf("data of %d operations not extracted: more than %d files", x.lost, maxFiles)
	}
	return n, err
}

// place moves a file to the path that it had, as far as that can be; otherwise to one derived from its
// handle.
func (x *Extractor) place(f *file, number int, captured string, taken map[string]bool) (*Entry, error) {
	handle := hex.EncodeToString([]byte(f.handle))
	e := &Entry{FileHandle: handle, Size: f.size, ReadBytes: f.read, WrittenBytes: f.written, Note: f.note}
	if x.mixed {
		e.Server = f.address.Unmap().String()
	}
	if fill := f.store.length - min(f.carried, f.store.length); fill > x.holes {
		e.Packed = true
		x.packed++
		f.known = f.known.within(f.store.written())
	} else {
		x.holes -= fill
	}
	if err := x.settleStore(&f.store, &f.known, e.Packed); err != nil {
		return nil, err
	}
	path := clean(captured)
	if path == "" || taken[path] || x.move(f, path) != nil {
		path = filepath.Join(byHandle, handle[:min(len(handle), 200)])
		if len(handle) > 200 || taken[path] {
			path += fmt.Sprintf("-%d", number)
		}
		if err := x.move(f, path); err != nil {
			return nil, err
		}
	}
	taken[path] = true
	e.Path = path
	e.Covered = f.known.bytes(forever)
	f.list(e)
	var err error
	if e.MD5, err = x.md5Of(path); err != nil {
		return nil, err
	}
	e.Complete = f.sizeKnown && e.Covered == f.size && !f.store.lost
	f.known, f.store.data, f.store.far = spans{}, spans{}, nil
	if captured != path {
		e.CapturedPath = captured
	}
	return e, nil
}

// move gives a file its path, unless something there must stay: a directory, or a file that is read.
func (x *Extractor) move(f *file, path string) error {
	if dir := filepath.Dir(path); dir != "." {
		if err := x.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	if info, err := x.root.Stat(path); err == nil {
		if info.IsDir() {
			return &fs.PathError{Op: "write", Path: path, Err: errors.New("is a directory")}
		}
		if err := x.outputs.CheckInfo(path, info); err != nil {
			return err
		}
	}
	return x.root.Rename(f.store.path, path)
}

func (x *Extractor) md5Of(path string) (string, error) {
	f, err := x.root.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := md5.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// appendJSON appends the line of a file.
func (e *Entry) appendJSON(b []byte) []byte { return printable.AppendValue(b, e) }
