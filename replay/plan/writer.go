package plan

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// line is a line of a plan: exactly one of its members is set.
type line struct {
	Header     *Header     `json:"plan,omitempty"`
	Server     *Server     `json:"server,omitempty"`
	Connection *Connection `json:"connection,omitempty"`
	Credential *Credential `json:"credential,omitempty"`
	Client     *Client     `json:"client,omitempty"`
	Session    *Session    `json:"session,omitempty"`
	Owner      *Owner      `json:"owner,omitempty"`
	State      *State      `json:"state,omitempty"`
	Object     *Object     `json:"object,omitempty"`
	Op         *Op         `json:"op,omitempty"`
	Skip       *Skip       `json:"skip,omitempty"`
	End        *end        `json:"end,omitempty"`
}

// end is the last line: without it a plan has been cut.
type end struct {
	Ops   int `json:"ops"`
	Skips int `json:"skips"`
}

// Writer writes a plan.
type Writer struct {
	enc   *json.Encoder
	w     *bufio.Writer
	ops   int
	skips int
	close []io.Closer
}

// NewFileWriter makes a Writer to a file, compressed with zstd unless its name ends with .json, which leaves text, or .gz. Close closes the
// file.
func NewFileWriter(f io.WriteCloser, name string) (*Writer, error) {
	var out io.WriteCloser
	switch {
	case strings.HasSuffix(name, ".json"):
		w := NewWriter(f)
		w.close = []io.Closer{f}
		return w, nil
	case strings.HasSuffix(name, ".gz"):
		out = gzip.NewWriter(f)
	default:
		var err error
		// Calls resemble those right before them: a small window does.
		out, err = zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
		if err != nil {
			return nil, err
		}
	}
	w := NewWriter(out)
	w.close = []io.Closer{out, f}
	return w, nil
}

// NewWriter makes a Writer of plain ndjson.
func NewWriter(w io.Writer) *Writer {
	b := bufio.NewWriterSize(w, 1<<16)
	return &Writer{enc: printable.Encoder(b), w: b}
}

// Tables writes all that comes before the ops.
func (w *Writer) Tables(t *Tables) error {
	return w.Stream(t, func(yield func(*Object) bool) {
		for i := range t.Objects {
			if !yield(&t.Objects[i]) {
				return
			}
		}
	})
}

// Stream is Tables with the objects from an iterator instead of t.Objects. The table
// of objects may take far more memory than the data it is made from.
func (w *Writer) Stream(t *Tables, objects iter.Seq[*Object]) error {
	err := w.enc.Encode(line{Header: &t.Header})
	for i := range t.Servers {
		err = w.one(err, line{Server: &t.Servers[i]})
	}
	for i := range t.Connections {
		err = w.one(err, line{Connection: &t.Connections[i]})
	}
	for i := range t.Credentials {
		err = w.one(err, line{Credential: &t.Credentials[i]})
	}
	for i := range t.Clients {
		err = w.one(err, line{Client: &t.Clients[i]})
	}
	for i := range t.Sessions {
		err = w.one(err, line{Session: &t.Sessions[i]})
	}
	for o := range objects {
		if err = w.one(err, line{Object: o.worded()}); err != nil {
			break
		}
	}
	for i := range t.Owners {
		err = w.one(err, line{Owner: &t.Owners[i]})
	}
	for i := range t.States {
		err = w.one(err, line{State: &t.States[i]})
	}
	return err
}

func (w *Writer) one(err error, l line) error {
	if err != nil {
		return err
	}
	return w.enc.Encode(l)
}

// Op writes the next op.
func (w *Writer) Op(o *Op) error {
	w.ops++
	return w.enc.Encode(line{Op: o})
}

// Skip writes a transaction that is not replayed.
func (w *Writer) Skip(s *Skip) error {
	w.skips++
	return w.enc.Encode(line{Skip: s})
}

// Flush writes what is held back. A plan that is not closed is a part of one.
func (w *Writer) Flush() error { return w.w.Flush() }

// Append adds the ops and skips that another Writer has written and that are read
// from r.
func (w *Writer) Append(r io.Reader, written *Writer) error {
	w.ops += written.ops
	w.skips += written.skips
	_, err := io.Copy(w.w, r)
	return err
}

// Close ends the plan, and closes its file.
func (w *Writer) Close() error {
	err := errors.Join(w.enc.Encode(line{End: &end{w.ops, w.skips}}), w.w.Flush())
	for _, c := range w.close {
		err = errors.Join(err, c.Close())
	}
	return err
}
