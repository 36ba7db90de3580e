package workload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// Open reads the tables of a plan and opens its data file. The ops stay in the file: Read reads
// them. The tables may have limit bytes of text, 0 for any number; longer ones give a
// *plan.TooLongError. Of a plan whose header does not say what has to be known beforehand, all ops
// are read once.
func Open(name string, limit int64) (*Workload, error) {
	r, err := plan.Open(name, limit)
	if err != nil {
		return nil, err
	}
	r.Stream()
	w := &Workload{Tables: r.Tables, name: name}
	w.opened, r.Tables = r, plan.Tables{}
	r.Refer(&w.Tables)
	if err := w.openData(name); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if w.known = w.headed(); w.known == nil {
		if w.known, err = w.scan(); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

func (w *Workload) openData(name string) error {
	d := w.Tables.Header.Data
	if d == "" {
		return nil
	}
	if !filepath.IsLocal(d) {
		return fmt.Errorf("%s: its data file %q is not beside it", name, d)
	}
	f, err := os.Open(filepath.Join(filepath.Dir(name), d))
	if err != nil {
		return fmt.Errorf("the plan's data: %w", err)
	}
	w.Data, w.close = f, append(w.close, f.Close)
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() && st.Size() < w.Tables.Header.DataBytes {
		return fmt.Errorf("%s: the plan's data has been cut: %d bytes of %d are there: copy both files again, or make the plan anew", f.Name(), st.Size(), w.Tables.Header.DataBytes)
	}
	return nil
}

// Streams reports whether the ops are in a file, and not in memory.
func (w *Workload) Streams() bool { return w.name != "" }

// Find is the first op with a captured XID; 0 if there is none.
func (w *Workload) Find(xid uint32) (int, error) {
	s, err := w.Read()
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for {
		o, _, err := s.Next()
		switch {
		case err == io.EOF:
			return 0, nil
		case err != nil:
			return 0, err
		case o != nil && o.XID == xid:
			return o.ID, nil
		}
	}
}

// Source returns the ops of a plan, in order, and what is not replayed.
type Source struct {
	load *Workload
	r    *plan.Reader // nil: from memory
	next int
}

// Read begins to read the ops.
func (w *Workload) Read() (*Source, error) {
	if w.name == "" {
		return &Source{load: w}, nil
	}
	if r := w.opened; r != nil {
		w.opened = nil
		return &Source{load: w, r: r}, nil
	}
	r, err := plan.Open(w.name, 0)
	if err != nil {
		return nil, err
	}
	if len(r.Tables.Objects) != len(w.Tables.Objects) || len(r.Tables.States) != len(w.Tables.States) {
		return nil, errors.Join(fmt.Errorf("%s was changed while it was read", w.name), r.Close())
	}
	r.Tables = plan.Tables{} // there is one copy already
	r.Refer(&w.Tables)
	return &Source{load: w, r: r}, nil
}

// Next returns the next op, or the next transaction that is not replayed. Those of a plan in
// memory are not returned. At the end the error is io.EOF.
func (s *Source) Next() (*plan.Op, *plan.Skip, error) {
	if s.r == nil {
		if s.next >= len(s.load.Ops) {
			return nil, nil, io.EOF
		}
		s.next++
		return s.load.Ops[s.next-1], nil, nil
	}
	o, skip, err := s.r.Next()
	if o != nil && s.load.known != nil {
		if err = s.load.known.foreseen(o); err != nil {
			err = fmt.Errorf("%s: %w", s.load.name, err)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return o, skip, nil
}

// Size is how many bytes of the plan the line has that Next has returned; 0 if it is in memory.
func (s *Source) Size() int {
	if s.r == nil {
		return 0
	}
	return s.r.Size()
}

// Place is before what Next has returned.
func (s *Source) Place() plan.Place {
	if s.r == nil {
		return plan.Place{Ops: s.next - 1}
	}
	return s.r.Place()
}

// Skip goes on at a place.
func (s *Source) Skip(p plan.Place) error {
	if s.r == nil {
		if p.Ops < 0 || p.Ops > len(s.load.Ops) {
			return fmt.Errorf("the plan has no op %d", p.Ops+1)
		}
		s.next = p.Ops
		return nil
	}
	return s.r.Skip(p)
}

// Close ends the reading.
func (s *Source) Close() error {
	if s.r == nil {
		return nil
	}
	return s.r.Close()
}
