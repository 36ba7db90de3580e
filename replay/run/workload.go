package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// Load reads a plan and opens its data file. All of it is held in memory, which
// takes up to four times as much as the text of the plan; that may have limit
// bytes, 0 for any number. More is a *plan.TooLongError.
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

// maxImpossible is how many reasons are told apart.
const maxImpossible = 32

// Impossible counts the transactions of the capture that cannot be replayed, by
// reason, the most frequent first.
func (w *Workload) Impossible() []plan.Reason {
	var list []plan.Reason
	at := map[string]int{}
	for _, s := range w.Skips {
		if s.Class != plan.Impossible {
			continue
		}
		why := s.Reason
		i, ok := at[why]
		if !ok && len(list) >= maxImpossible {
			why = "other reasons"
			i, ok = at[why]
		}
		if !ok {
			i, at[why] = len(list), len(list)
			list = append(list, plan.Reason{Class: s.Class, Reason: why})
		}
		list[i].Count++
	}
	slices.SortStableFunc(list, func(a, b plan.Reason) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// NothingError says that a plan holds nothing worth a replay, and why.
type NothingError struct {
	Left       int           // calls that set up and tear down sessions, and the like
	Impossible []plan.Reason // why the others are not in the plan
}

func (e *NothingError) Error() string {
	n := 0
	var why []string
	for _, r := range e.Impossible {
		n += r.Count
		why = append(why, fmt.Sprintf("%d: %s", r.Count, r.Reason))
	}
	s := fmt.Sprintf("nothing of this capture's workload can be replayed: %s cannot (%s)", count(n, "call"), strings.Join(why, "; "))
	if e.Left > 0 {
		s += fmt.Sprintf("; the other %d only set up and tear down sessions, or do nothing", e.Left)
	}
	return s
}

// nothing reports whether what the capture's clients did cannot be replayed at
// all: a *NothingError. That they did nothing, or nothing but mount, is no reason.
func (w *Workload) nothing() error {
	impossible := w.Impossible()
	if len(impossible) == 0 || slices.ContainsFunc(w.Ops, func(o *plan.Op) bool { return o.Role == plan.Workload || o.Role == plan.Mounting }) {
		return nil
	}
	return &NothingError{Left: len(w.Ops), Impossible: impossible}
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
// are several. The files are prepared with it, since not all servers have the same
// handles in all versions.
func (w *Workload) Version() string {
	v := "3"
	for _, o := range w.Ops {
		if o.Compound != nil {
			v = max(v, fmt.Sprintf("4.%d", o.Compound.Minor))
		}
	}
	return v
}
