package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// Workload is a plan in memory, with the file that holds its data.
type Workload struct {
	Tables plan.Tables
	Ops    []*plan.Op
	Skips  []*plan.Skip
	Data   io.ReaderAt // nil if there is none

	close []func() error
}

// Load reads a plan and opens its data file.
func Load(name string) (*Workload, error) {
	r, err := plan.Open(name)
	if err != nil {
		return nil, err
	}
	w := &Workload{Tables: r.Tables}
	err = w.read(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	w.Tables = r.Tables
	if d := w.Tables.Header.Data; d != "" {
		if !filepath.IsLocal(d) {
			return nil, fmt.Errorf("%s: its data file %q is not beside it", name, d)
		}
		f, err := os.Open(filepath.Join(filepath.Dir(name), d))
		if err != nil {
			return nil, fmt.Errorf("the plan's data: %w", err)
		}
		w.Data, w.close = f, append(w.close, f.Close)
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

// OnClose adds what Close does.
func (w *Workload) OnClose(f func() error) { w.close = append(w.close, f) }

// Close closes the data file.
func (w *Workload) Close() error {
	var err error
	for _, f := range w.close {
		err = errors.Join(err, f())
	}
	w.close = nil
	return err
}

// Version is that of NFS that the ops speak: "3", "4.0" …; the highest if there
// are several. Handles of one version mean nothing in another one, so that the
// files are prepared with the version of the ops.
func (w *Workload) Version() string {
	v := "3"
	for _, o := range w.Ops {
		if o.Compound != nil {
			v = max(v, fmt.Sprintf("4.%d", o.Compound.Minor))
		}
	}
	return v
}
