package capture

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/internal/heap"
)

// openAll opens each input to find the time of its first packet. Regular files are closed again until their
// turn comes, so that only one file of a long rotated series is open and in memory at a time.
func (r *files) openAll() error {
	var empty error
	empties := 0
	for _, in := range r.inputs {
		err := r.peek(in)
		switch {
		case err == nil:
		case errors.Is(err, errEmpty):
			empty = err
			empties++
			r.problems.add(in.name, 0, 0, nil, "%s", errEmpty)
		default:
			return err
		}
	}
	if empties == len(r.inputs) {
		return empty
	}
	return nil
}

// peek queues an input by its first packet. An input without packets is done
// with at once.
func (r *files) peek(in *input) error {
	var ps problems
	var consumed atomic.Int64
	small := r.lim
	small.batch = min(small.batch, peekSize)
	f, err := openFile(in.name, r.stdin, small, &ps, &consumed)
	if err != nil {
		return err
	}
	in.size = f.size
	if f.src.waits || in.name == "-" { // cannot be read twice
		f.lim, f.probs = r.lim, &r.problems
		f.src.raw.n = &in.consumed
		in.consumed.Store(consumed.Load())
		in.file = f
		err = f.fill(&in.batch)
	} else {
		err = f.fill(&in.batch)
		f.Close()
	}
	switch {
	case err == io.EOF:
		r.problems.merge(&ps)
		in.finish()
		return nil
	case err != nil:
		return err
	}
	in.time = in.batch.Packets[0].Time
	if in.file == nil {
		in.batch = Batch{}
	}
	r.queue = heap.Push(r.queue, in, before)
	return nil
}

// finish closes an input that was read to its end.
func (in *input) finish() {
	in.close()
	if in.size > 0 {
		in.consumed.Store(in.size)
	}
}

// before reports whether the next packet of a comes before that of b.
func before(a, b *input) bool {
	return a.time < b.time || a.time == b.time && a.index < b.index
}

// merge is Read for several inputs.
func (r *files) merge(b *Batch) error {
	b.Packets = b.Packets[:0]
	if cap(b.buf) < r.lim.batch {
		b.buf = make([]byte, r.lim.batch)
	}
	b.buf = b.buf[:cap(b.buf)]
	used := 0
	for len(r.queue) > 0 {
		in := r.queue[0]
		if in.next == len(in.batch.Packets) {
			if len(b.Packets) > 0 && in.file != nil && in.file.src.waits {
				return nil // do not keep packets back
			}
			ok, err := r.refill(in)
			switch {
			case err != nil && len(b.Packets) > 0:
				r.err = err // for the next Read
				return nil
			case err != nil:
				return err
			case !ok:
				_, r.queue = heap.Pop(r.queue, before)
			default:
				heap.Fix(r.queue, before)
			}
			continue
		}
		if in.lane < 0 {
			in.lane = r.taps.take(in.name, r.lim.same)
		}
		run := in.batch.Packets[in.next : in.next+r.run(in)]
		if in.next == 0 && len(run) == len(in.batch.Packets) && len(b.Packets) == 0 {
			// All of it comes next: pass on the memory instead of a copy.
			*b, in.batch = in.batch, *b
			in.batch.Packets = in.batch.Packets[:0]
			in.next = 0
			r.finishPackets(in, b.Packets)
			return nil
		}
		first, full := len(b.Packets), false
		for i := range run {
			p := &run[i]
			n := len(p.Data)
			if n > len(b.buf)-used {
				if len(b.Packets) > 0 {
					full = true
					break
				}
				b.buf = make([]byte, n)
			}
			q := *p
			q.Data = b.buf[used : used+n : used+n]
			copy(q.Data, p.Data)
			used += n
			b.Packets = append(b.Packets, q)
			in.next++
		}
		r.finishPackets(in, b.Packets[first:])
		if full || len(b.Packets) >= r.lim.batch/pcapRecordHeader {
			// Packets without data take room too.
			if in.next < len(in.batch.Packets) {
				in.time = in.batch.Packets[in.next].Time
				heap.Fix(r.queue, before)
			}
			return nil
		}
		if in.next < len(in.batch.Packets) {
			in.time = in.batch.Packets[in.next].Time
			heap.Fix(r.queue, before)
		}
	}
	if len(b.Packets) == 0 {
		return io.EOF
	}
	return nil
}

// run returns how many packets of the first input come before those of all
// others: at least 1.
func (r *files) run(in *input) int {
	rest := in.batch.Packets[in.next:]
	var second *input
	for _, o := range r.queue[1:min(3, len(r.queue))] {
		if second == nil || before(o, second) {
			second = o
		}
	}
	if second == nil {
		return len(rest)
	}
	limit := second.time // last time that still comes first
	if in.index > second.index {
		limit--
	}
	n := 1
	for n < len(rest) && rest[n].Time <= limit {
		n++
	}
	return n
}

// finishPackets numbers packets as parts of the whole.
func (r *files) finishPackets(in *input, ps []Packet) {
	for i := range ps {
		p := &ps[i]
		r.number++
		p.Number = r.number
		r.taps.note(in, in.lane, int(p.Tap))
		p.Tap = r.taps.of(in.lane, p.Tap)
	}
}

// refill reads the next batch of an input, which it opens if need be. It
// returns false at the end of the input.
func (r *files) refill(in *input) (bool, error) {
	if in.file == nil {
		var err error
		in.file, err = openFile(in.name, r.stdin, r.lim, &r.problems, &in.consumed)
		if err != nil {
			return false, err
		}
	}
	in.next = 0
	switch err := in.file.fill(&in.batch); err {
	case nil:
		in.time = in.batch.Packets[0].Time
		return true, nil
	case io.EOF:
		in.finish()
		if in.lane >= 0 {
			r.taps.free(in.lane)
		}
		return false, nil
	default:
		return false, err
	}
}
