package plan

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Limits of a plan that is read.
const (
	maxLine  = 16 << 20 // bytes
	maxParts = 1 << 18  // objects and lists in a line: each takes far more memory than text
	maxTable = 1 << 24  // lines of one kind before the ops
	maxOps   = 1 << 40
)

// Reader reads a plan. It checks what it reads: IDs are in order, references
// lead to what exists, dependencies point backwards.
type Reader struct {
	Tables Tables

	refer   *Tables // that ops are checked against, if not Tables
	name    string  // of the file; empty if it is not known
	s       *bufio.Reader
	buf     []byte
	limit   int64 // bytes of text that are read; 0 is all
	read    int64
	number  int   // of the line
	start   int64 // where it begins, without compression
	pending *line
	ops     int
	skips   int
	wasOp   bool // Next has returned an op
	ended   bool
	close   []func() error
}

// Error is a mistake in a plan.
type Error struct {
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("plan: line %d: %v", e.Line, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// TooLongError says that a plan has more text than was to be read.
type TooLongError struct {
	Limit int64 // bytes, without compression
}

func (e *TooLongError) Error() string {
	if e.Limit < 1<<20 {
		return fmt.Sprintf("the plan has more than %d bytes of text", e.Limit)
	}
	return fmt.Sprintf("the plan has more than %d MiB of text", e.Limit>>20)
}

// Is reports whether a file is a plan, of whatever version.
func Is(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	r := &Reader{s: bufio.NewReaderSize(f, 1<<12)}
	if err := r.unpack(); err != nil {
		return false
	}
	defer r.Close()
	head, _ := r.s.Peek(64)
	head = bytes.ReplaceAll(head, []byte(" "), nil)
	return bytes.HasPrefix(head, []byte(`{"plan":{`)) && bytes.Contains(head, []byte(`"rpcrdma.plan/`))
}

// ReadHeader reads the header of a plan and nothing else.
func ReadHeader(name string) (*Header, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r := &Reader{s: bufio.NewReaderSize(f, 1<<16)}
	if err = r.unpack(); err == nil {
		err = r.header()
	}
	if err = errors.Join(err, r.Close(), f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &r.Tables.Header, nil
}

// Open reads the tables of a plan, which may be compressed with gzip or zstd.
// Tables and operations together may have limit bytes of text, 0 for any number:
// what lies beyond is a *TooLongError.
func Open(name string, limit int64) (*Reader, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r, err := newReader(f, limit)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	r.name, r.close = name, append(r.close, f.Close)
	return r, nil
}

// NewReader reads the tables of a plan.
func NewReader(in io.Reader) (*Reader, error) { return newReader(in, 0) }

func newReader(in io.Reader, limit int64) (*Reader, error) {
	r := &Reader{s: bufio.NewReaderSize(in, 1<<16), limit: limit}
	if err := r.unpack(); err != nil {
		return nil, err
	}
	if err := r.tables(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// unpack looks through compression.
func (r *Reader) unpack() error {
	magic, _ := r.s.Peek(4)
	switch {
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r.s, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(32<<20))
		if err != nil {
			return err
		}
		r.s = bufio.NewReaderSize(z, 1<<16)
		r.close = append(r.close, func() error { z.Close(); return nil })
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r.s)
		if err != nil {
			return err
		}
		r.s = bufio.NewReaderSize(z, 1<<16)
	}
	return nil
}

func (r *Reader) tables() error {
	if err := r.header(); err != nil {
		return err
	}
	t := &r.Tables
	for {
		l, err := r.next()
		if err == io.EOF {
			return r.failf("the plan has been cut: its last line is missing")
		}
		if err != nil {
			return err
		}
		switch {
		case l.Server != nil:
			err = add(&t.Servers, l.Server, l.Server.ID)
		case l.Connection != nil:
			err = add(&t.Connections, l.Connection, l.Connection.ID)
		case l.Credential != nil:
			err = add(&t.Credentials, l.Credential, l.Credential.ID)
		case l.Client != nil:
			err = add(&t.Clients, l.Client, l.Client.ID)
		case l.Session != nil:
			err = add(&t.Sessions, l.Session, l.Session.ID)
		case l.Owner != nil:
			err = add(&t.Owners, l.Owner, l.Owner.ID)
		case l.State != nil:
			err = add(&t.States, l.State, l.State.ID)
		case l.Object != nil:
			l.Object.understood()
			err = add(&t.Objects, l.Object, l.Object.ID)
		case l.Op != nil || l.Skip != nil || l.End != nil:
			r.pending = l
			if err := r.Tables.check(); err != nil {
				return err
			}
			return nil
		default:
			err = errors.New("a line of an unknown kind")
		}
		if err != nil {
			return r.fail(err)
		}
	}
}

// header reads the first line.
func (r *Reader) header() error {
	l, err := r.next()
	if err == io.EOF {
		return errors.New("not a plan: empty")
	}
	if err != nil {
		return err
	}
	if l.Header == nil {
		return r.failf("not a plan: it does not begin with a header")
	}
	if l.Header.Format != Format {
		if name, _, ok := strings.Cut(l.Header.Format, "/"); ok && name == "rpcrdma.plan" {
			return r.failf("a plan of the format %q; this program knows %s", l.Header.Format, Format)
		}
		return r.failf("not a plan: format %q", l.Header.Format)
	}
	r.Tables.Header = *l.Header
	return nil
}

func add[T any](list *[]T, v *T, id int) error {
	if id != len(*list)+1 {
		return fmt.Errorf("id %d, expected %d", id, len(*list)+1)
	}
	if id > maxTable {
		return fmt.Errorf("more than %d lines of this kind", maxTable)
	}
	*list = append(*list, *v)
	return nil
}

// All reads all ops that follow.
func (r *Reader) All() ([]*Op, error) {
	var ops []*Op
	for {
		o, _, err := r.Next()
		if err == io.EOF {
			return ops, nil
		}
		if err != nil {
			return ops, err
		}
		if o != nil {
			ops = append(ops, o)
		}
	}
}

// Next returns the next op, or the next transaction that is not replayed. At
// the end of the plan the error is io.EOF. Other errors name the file that Open has opened.
func (r *Reader) Next() (*Op, *Skip, error) {
	o, s, err := r.call()
	if err != nil && err != io.EOF && r.name != "" {
		err = fmt.Errorf("%s: %w", r.name, err)
	}
	return o, s, err
}

// call reads a line about a call.
func (r *Reader) call() (*Op, *Skip, error) {
	l := r.pending
	r.pending = nil
	if r.ended {
		return nil, nil, io.EOF
	}
	if l == nil {
		var err error
		l, err = r.next()
		if err == io.EOF {
			return nil, nil, r.failf("the plan has been cut: its last line is missing")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	switch {
	case l.Op != nil:
		r.ops++
		r.wasOp = true
		if l.Op.ID != r.ops {
			return nil, nil, r.failf("op %d, expected %d", l.Op.ID, r.ops)
		}
		if err := l.Op.check(r.referred()); err != nil {
			return nil, nil, r.fail(err)
		}
		return l.Op, nil, nil
	case l.Skip != nil:
		r.skips++
		r.wasOp = false
		return nil, l.Skip, nil
	case l.End != nil:
		if l.End.Ops != r.ops || l.End.Skips != r.skips {
			return nil, nil, r.failf("the last line counts %d ops and %d skipped, there are %d and %d", l.End.Ops, l.End.Skips, r.ops, r.skips)
		}
		r.ended = true
		return nil, nil, io.EOF
	}
	return nil, nil, r.failf("a line that does not belong among the ops")
}

// next reads a line.
func (r *Reader) next() (*line, error) {
	for {
		r.buf = r.buf[:0]
		last := false
		for {
			part, err := r.s.ReadSlice('\n')
			r.buf = append(r.buf, part...)
			if len(r.buf) > maxLine {
				return nil, r.failf("longer than %d bytes", maxLine)
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			if err == io.EOF && len(r.buf) > 0 || err == nil {
				last = err != nil
				break
			}
			if err == io.ErrUnexpectedEOF {
				return nil, r.failf("the plan has been cut: %w", err)
			}
			return nil, err
		}
		r.number++
		r.start = r.read
		if r.read += int64(len(r.buf)); r.limit > 0 && r.read > r.limit {
			return nil, &TooLongError{r.limit}
		}
		if bytes.Count(r.buf, []byte("{"))+bytes.Count(r.buf, []byte("[")) > maxParts {
			return nil, r.failf("more than %d objects and lists", maxParts)
		}
		if len(bytes.TrimSpace(r.buf)) == 0 {
			continue
		}
		l := new(line)
		if err := json.Unmarshal(r.buf, l); err != nil {
			if last {
				return nil, r.failf("the plan has been cut: %w", err)
			}
			return nil, r.fail(err)
		}
		return l, nil
	}
}

func (r *Reader) failf(format string, args ...any) error { return r.fail(fmt.Errorf(format, args...)) }

func (r *Reader) fail(err error) error { return &Error{r.number, err} }

// Refer has ops checked against other tables than the reader's own.
func (r *Reader) Refer(t *Tables) { r.refer = t }

func (r *Reader) referred() *Tables {
	if r.refer != nil {
		return r.refer
	}
	return &r.Tables
}

// Size is how many bytes of text the line has that Next has returned.
func (r *Reader) Size() int { return len(r.buf) }

// Place is a place between two lines of a plan.
type Place struct {
	Offset int64 `json:"offset"` // bytes of text before it, without compression
	Line   int   `json:"line"`   // lines before it
	Ops    int   `json:"ops"`    // of these
	Skips  int   `json:"skips"`
}

// Place is before the line that Next has returned.
func (r *Reader) Place() Place {
	p := Place{r.start, r.number - 1, r.ops, r.skips}
	if r.wasOp {
		p.Ops--
	} else {
		p.Skips--
	}
	return p
}

// Skip goes on at a place that another Reader of the same plan has returned.
func (r *Reader) Skip(p Place) error {
	if p.Offset < r.start || p.Ops < 0 || p.Skips < 0 || p.Line < 0 {
		return fmt.Errorf("the plan has no calls at offset %d", p.Offset)
	}
	if p.Offset == r.start {
		return nil
	}
	for n := p.Offset - r.read; n > 0; {
		k, err := r.s.Discard(int(min(n, 1<<20)))
		if n -= int64(k); err != nil && n > 0 {
			return fmt.Errorf("the plan ends before offset %d: %w", p.Offset, err)
		}
	}
	r.pending, r.read, r.start = nil, p.Offset, p.Offset
	r.number, r.ops, r.skips = p.Line, p.Ops, p.Skips
	return nil
}

// Stream lets a reader that has read the tables go on without a limit: for one who
// keeps no operation.
func (r *Reader) Stream() { r.limit = 0 }

// Close closes the file.
func (r *Reader) Close() error {
	var err error
	for _, f := range r.close {
		err = errors.Join(err, f())
	}
	r.close = nil
	return err
}
