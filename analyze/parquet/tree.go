package parquet

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

const (
	// maxOpen is how many files are written at once. Transactions come nearly in the order of time, so two
	// would do usually.
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
	// Outputs knows what else the command reads and writes; may be nil.
	Outputs *outfile.Files
	// AtOnce gives all files their names in Close. Otherwise one has its name as
	// soon as later ones have taken over, which suits captures without an end.
	AtOnce bool
	// Group, if not zero, is the row group in bytes that all files being written share: see
	// NewSmallWriter.
	Group int

	dir      string
	layout   Layout
	metadata map[string]string
	open     []*part // the one used last comes last
	whole    []*part // ended, and without a name
	spare    []*Writer
	files    int
	rows     uint64
	limit    int
}

type part struct {
	start  int64
	folder string
	file   *outfile.File
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
		err := old.close()
		switch {
		case err != nil:
			old.file.Discard()
		case t.AtOnce:
			t.whole = append(t.whole, old)
		default:
			err = old.name()
		}
		if err != nil {
			return nil, err
		}
		t.spare = append(t.spare, old.w)
		old.w, old.buf = nil, nil
	}
	if t.files >= t.limit {
		return nil, fmt.Errorf("more than %d files: the times in the capture jump about, or the partitions are too small", t.limit)
	}
	p := &part{start: start, folder: filepath.Join(t.dir, filepath.FromSlash(t.layout.folder(start)))}
	if err := os.MkdirAll(p.folder, 0o777); err != nil {
		return nil, err
	}
	// Readers leave out names that begin with a dot, as temporary files do.
	f, err := t.Outputs.CreateIn(p.folder)
	if err != nil {
		return nil, err
	}
	t.files++
	p.file, p.buf = f, bufio.NewWriterSize(f, fileBuffer)
	if n := len(t.spare); n > 0 {
		p.w, t.spare = t.spare[n-1], t.spare[:n-1]
		p.w.Reset(p.buf)
	} else if t.Group > 0 {
		p.w = NewSmallWriter(p.buf, t.metadata, max(t.Group/maxOpen, 1))
	} else {
		p.w = NewWriter(p.buf, t.metadata)
	}
	t.open = append(t.open, p)
	return p, nil
}

// Close ends all files and gives them their names.
func (t *Tree) Close() error {
	var errs []error
	for _, p := range t.open {
		errs = append(errs, p.close())
	}
	if err := errors.Join(errs...); err != nil {
		t.Discard()
		return err
	}
	for _, p := range append(t.whole, t.open...) {
		errs = append(errs, p.name())
	}
	t.open, t.whole = nil, nil
	return errors.Join(errs...)
}

// Discard removes what has no name yet. After Close it does nothing.
func (t *Tree) Discard() {
	for _, p := range append(t.whole, t.open...) {
		p.file.Discard()
	}
	t.open, t.whole = nil, nil
}

// close ends the writing.
func (p *part) close() error { return errors.Join(p.w.Close(), p.buf.Flush(), p.file.Close()) }

// name gives the file the first free name of its folder.
func (p *part) name() error {
	return p.file.CommitNew(func(n int) string {
		return filepath.Join(p.folder, fmt.Sprintf("part-%d.parquet", n))
	}, maxParts)
}
