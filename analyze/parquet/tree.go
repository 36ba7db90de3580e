package parquet

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

const (
	// maxOpen is how many files are written at once. Transactions come nearly
	// in the order of time, so two would do as a rule.
	maxOpen = 3
	// maxFiles bounds the files of one run: a capture with a clock that jumps
	// about would fill the directory.
	maxFiles = 10000
	// maxParts bounds the search for a free name in a folder.
	maxParts = 1 << 20
)

// Tree writes files below a directory: DIR/date=2026-11-21/hour=05/host=a/part-0.parquet.
// Files that are there stay; new ones take the next free number. A file has
// its name once it is whole.
type Tree struct {
	dir      string
	layout   Layout
	metadata map[string]string
	open     []*part // the one used last comes last
	spare    []*Writer
	files    int
	rows     uint64
	limit    int
}

type part struct {
	start  int64
	folder string
	temp   string
	file   *os.File
	buf    *bufio.Writer
	w      *Writer
}

// NewTree makes a Tree. The directory is made when there is something to
// write.
func NewTree(dir string, l Layout, metadata map[string]string) *Tree {
	return &Tree{dir: dir, layout: l, metadata: metadata, limit: maxFiles}
}

// Add writes a transaction.
func (t *Tree) Add(v *rpc.View) error {
	p, err := t.part(t.layout.start(v.Tx.First().Time))
	if err != nil {
		return err
	}
	t.rows++
	return p.w.Add(v)
}

// Rows and Files are how many there are so far.
func (t *Tree) Rows() uint64 { return t.rows }

// Files is how many files were begun.
func (t *Tree) Files() int { return t.files }

func (t *Tree) part(start int64) (*part, error) {
	for i, p := range t.open {
		if p.start != start {
			continue
		}
		if i != len(t.open)-1 {
			t.open = append(slices.Delete(t.open, i, i+1), p)
		}
		return p, nil
	}
	if len(t.open) >= maxOpen {
		old := t.open[0]
		t.open = slices.Delete(t.open, 0, 1)
		if err := old.close(); err != nil {
			return nil, err
		}
		t.spare = append(t.spare, old.w)
	}
	if t.files >= t.limit {
		return nil, fmt.Errorf("more than %d files: the times in the capture jump about, or the partitions are too small", t.limit)
	}
	p := &part{start: start, folder: filepath.Join(t.dir, filepath.FromSlash(t.layout.folder(start)))}
	if err := os.MkdirAll(p.folder, 0o777); err != nil {
		return nil, err
	}
	// Readers leave out names that begin with a dot.
	p.temp = filepath.Join(p.folder, fmt.Sprintf(".part-%d-%d.tmp", os.Getpid(), t.files))
	f, err := os.Create(p.temp)
	if err != nil {
		return nil, err
	}
	t.files++
	p.file, p.buf = f, bufio.NewWriterSize(f, pageBytes)
	if n := len(t.spare); n > 0 {
		p.w, t.spare = t.spare[n-1], t.spare[:n-1]
		p.w.Reset(p.buf)
	} else {
		p.w = NewWriter(p.buf, t.metadata)
	}
	t.open = append(t.open, p)
	return p, nil
}

// Close ends all files.
func (t *Tree) Close() error {
	var errs []error
	for _, p := range t.open {
		errs = append(errs, p.close())
	}
	t.open = nil
	return errors.Join(errs...)
}

func (p *part) close() error {
	err := errors.Join(p.w.Close(), p.buf.Flush(), p.file.Close())
	if err == nil {
		err = p.rename()
	}
	if err != nil {
		os.Remove(p.temp)
	}
	return err
}

// rename gives the file the first free name of its folder.
func (p *part) rename() error {
	for n := range maxParts {
		name := filepath.Join(p.folder, fmt.Sprintf("part-%d.parquet", n))
		err := os.Link(p.temp, name)
		switch {
		case err == nil:
			return os.Remove(p.temp)
		case errors.Is(err, fs.ErrExist):
			continue
		}
		// A file system without hard links.
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
		return os.Rename(p.temp, name)
	}
	return fmt.Errorf("%s: no free name", p.folder)
}
