package capture

import (
	"errors"
	"fmt"
	"io"
)

// Source is an input that is opened when its turn comes: an object of a store, for example.
type Source struct {
	Name string // for problems
	Open func() (io.ReadCloser, error)
	Size int64 // in bytes, as stored; 0 if not known
}

// OpenSeries reads sources one after another, in the order of the list, as one capture: rotated files of one
// place. Only one is open at a time, and each is opened once. What it is, pcap or pcapng, also compressed, is
// found out from its bytes. Interfaces with the same index are one tap.
//
// Sources without any byte are left out with a Problem, as rotation makes such files; if all are, that is an
// error. An error of Source.Open ends the reading. The Reader is also a Tapper and a Progresser.
func OpenSeries(list []Source, opts Options) (Reader, error) {
	if len(list) == 0 {
		return nil, errors.New("no input named")
	}
	r := &series{list: list}
	r.lim, r.number = opts.limits(), opts.First
	for _, s := range list {
		size := s.Size
		if size <= 0 {
			size = -1
		}
		r.inputs = append(r.inputs, &input{name: s.Name, lane: -1, size: size})
	}
	// What is wrong with the first is an error of opening, as for Open.
	switch err := r.next(); err {
	case nil:
		return r, nil
	case io.EOF:
		return nil, fmt.Errorf("%s: %w", list[len(list)-1].Name, errEmpty)
	default:
		return nil, err
	}
}

// series is the Reader of OpenSeries.
type series struct {
	files
	list []Source
	turn int    // of the source to be opened
	open *input // the one that is read; nil if none is
}

// next opens the next source that is not empty.
func (r *series) next() error {
	for r.turn < len(r.list) {
		s, in := &r.list[r.turn], r.inputs[r.turn]
		r.turn++
		rc, err := s.Open()
		if err != nil {
			return named(s.Name, err)
		}
		// Reading such a source does not wait for somebody who writes it.
		src, err := newSource(rc, false, r.lim.window, &in.consumed)
		if err == nil {
			src.closer = rc
			in.file, err = newFile(s.Name, src, in.size, r.lim, &r.problems)
		} else {
			rc.Close()
			err = named(s.Name, err)
		}
		switch {
		case err == nil:
			r.open = in
			return nil
		case errors.Is(err, errEmpty):
			r.problems.add(s.Name, 0, 0, nil, "%s", errEmpty)
		default:
			return err
		}
	}
	return io.EOF
}

func (r *series) Read(b *Batch) error {
	b.Packets = b.Packets[:0]
	for r.err == nil {
		if r.open == nil {
			r.err = r.next()
			continue
		}
		switch err := r.open.file.fill(b); err {
		case nil:
			r.taps.note(r.open, 0, r.open.file.dec.highest())
			for i := range b.Packets {
				r.number++
				b.Packets[i].Number = r.number
			}
			return nil
		case io.EOF:
			r.open.finish()
			r.open = nil
		default:
			r.err = err
		}
	}
	b.Packets = b.Packets[:0]
	return r.err
}
