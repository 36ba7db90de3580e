package workload

import (
	"errors"
	"fmt"
	"io"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// Workload is a plan, with the file that holds its data.
type Workload struct {
	Tables plan.Tables
	// Ops and Skips are nil if they stay in the file (Open).
	Ops   []*plan.Op
	Skips []*plan.Skip
	Data  io.ReaderAt // nil if there is none

	name   string       // of the plan, if ops stay in the file
	opened *plan.Reader // at the first op; nil once that was read
	known  *facts       // of these ops
	close  []func() error
}

// Load reads a plan and opens its data file. All of the plan is held in memory,
// which takes up to four times as much as its text. The text may have limit bytes, 0
// for any number; a longer one gives a *plan.TooLongError.
func Load(name string, limit int64) (*Workload, error) {
	r, err := plan.Open(name, limit)
	if err != nil {
		return nil, err
	}
	w := &Workload{Tables: r.Tables}
	err = w.read(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	w.Tables = r.Tables
	if err := w.openData(name); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Workload) read(r *plan.Reader) error {
	for {
		op, skip, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case op != nil:
			w.Ops = append(w.Ops, op)
		case skip != nil:
			w.Skips = append(w.Skips, skip)
		}
	}
}

// OnClose adds a function that Close calls.
func (w *Workload) OnClose(f func() error) { w.close = append(w.close, f) }

// Close closes the data file.
func (w *Workload) Close() error {
	var err error
	if w.opened != nil {
		err, w.opened = w.opened.Close(), nil
	}
	for _, f := range w.close {
		err = errors.Join(err, f())
	}
	w.close = nil
	return err
}

// Payload fills b with what a WRITE carries.
func (w *Workload) Payload(b []byte, p *plan.Payload) error {
	switch p.Source {
	case plan.Captured:
		if w.Data == nil {
			return errors.New("the plan names captured data, but its data file is not there")
		}
		if _, err := w.Data.ReadAt(b, p.At); err != nil {
			return fmt.Errorf("data file: %w", err)
		}
	case plan.Pattern:
		plan.FillPattern(b, p.Object, p.Offset)
	default:
		clear(b)
	}
	return nil
}

// Version is the version of NFS that the ops use: "3", "4.0" …; the highest if there
// are several. The files are prepared with it, since not every server has the same
// handles in all versions.
func (w *Workload) Version() string { return w.facts().version }

// Mixed reports whether ops are of NFSv3 and of NFSv4.
func (w *Workload) Mixed() bool { f := w.facts(); return f.v3 && f.version != "3" }
