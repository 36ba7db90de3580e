package unit

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/parquet"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

const (
	// maxOpen is how many Parquet files are written at once. Transactions come nearly in the order of time, so two
	// would do usually.
	maxOpen = 3
	// moreParts is how many files a unit may have besides maxOpen for each of Unit.Parts: a capture with a clock that
	// jumps about would fill the store.
	moreParts = 1000
	rowBuffer = 64 << 10
)

// rows writes transactions to Parquet files by day. A file waits on the local disk until it is whole.
type rows struct {
	run   *run
	group int // bytes of a row group
	limit int
	open  []*part // the one used last comes last
	spare []*parquet.Writer
}

// part is a file that is written.
type part struct {
	start, end  int64 // of the day, in nanoseconds since 1970
	first, last int64 // of the transactions
	index       int   // in kept.results
	file        *os.File
	buf         *bufio.Writer
	w           *parquet.Writer
}

func newRows(r *run, group int) *rows {
	limit := min(maxOpen*len(r.u.Parts())+moreParts, layout.MaxParts)
	return &rows{run: r, group: max(group, 1), limit: limit}
}

const day = int64(24 * 60 * 60 * 1e9)

// add writes a transaction.
func (r *rows) add(v *rpc.View) error {
	if r.run.again {
		return nil
	}
	at := v.Tx.First().Time
	p, err := r.part(at)
	if err != nil || p == nil {
		return err
	}
	p.first, p.last = min(p.first, at), max(p.last, at)
	return p.w.Add(v)
}

func (r *rows) part(at int64) (*part, error) {
	if n := len(r.open); n > 0 && at >= r.open[n-1].start && at < r.open[n-1].end {
		return r.open[n-1], nil
	}
	for i, p := range r.open {
		if at >= p.start && at < p.end {
			r.open = append(slices.Delete(r.open, i, i+1), p)
			return p, nil
		}
	}
	if len(r.run.kept.results) >= r.limit {
		r.run.kept.lost++
		return nil, nil
	}
	if len(r.open) >= maxOpen {
		old := r.open[0]
		r.open = slices.Delete(r.open, 0, 1)
		if err := r.close(old); err != nil {
			return nil, err
		}
	}
	return r.begin(at)
}

// begin begins a file.
func (r *rows) begin(at int64) (*part, error) {
	rest := at % day
	if rest < 0 {
		rest += day
	}
	k := &r.run.kept
	f, err := os.CreateTemp("", "rpcrdma-fleet-*.parquet")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name()) // it has no name: nothing is left after a crash
	p := &part{start: at - rest, end: at - rest + day, first: at, last: at, index: len(k.results), file: f}
	p.buf = bufio.NewWriterSize(f, rowBuffer)
	if n := len(r.spare); n > 0 {
		p.w, r.spare = r.spare[n-1], r.spare[:n-1]
		p.w.Reset(p.buf)
	} else {
		p.w = parquet.NewSmallWriter(p.buf, map[string]string{"rpcrdma.tap": r.run.u.Tap, "rpcrdma.unit": r.run.u.ID}, r.group)
	}
	k.results = append(k.results, layout.Result{Name: layout.PartName(layout.DayOf(p.start), r.run.u.Tap, r.run.u.ID, p.index), Tail: r.run.tail})
	r.open = append(r.open, p)
	return p, nil
}

// close ends a file and writes it to the store.
func (r *rows) close(p *part) error {
	defer p.file.Close()
	if err := errors.Join(p.w.Close(), p.buf.Flush()); err != nil {
		return err
	}
	x := &r.run.kept.results[p.index]
	w, err := r.run.out.WriteWhole(r.run.ctx, x.Name, p.file)
	if err != nil {
		return err
	}
	x.Size, x.SHA256, x.Rows, x.First, x.Last = w.Size, w.SHA256, p.w.Rows(), p.first, p.last
	r.spare = append(r.spare, p.w)
	return nil
}

// flush ends all files.
func (r *rows) flush() error {
	for len(r.open) > 0 {
		p := r.open[0]
		r.open = r.open[1:]
		if err := r.close(p); err != nil {
			return err
		}
	}
	r.open = nil
	return nil
}

// discard forgets what is not written yet.
func (r *rows) discard() {
	for _, p := range r.open {
		p.file.Close()
	}
	r.open = nil
}

// clean removes what an attempt by another version of the program has left: files of this unit that are not among
// its results.
func (r *run) clean() error {
	ours := make(map[string]bool, len(r.kept.results))
	for i := range r.kept.results {
		ours[r.kept.results[i].Name] = true
	}
	for o, err := range r.out.Folders(r.ctx, layout.Transactions) {
		if err != nil {
			return err
		}
		folder, ok := layout.DayFolder(o.Name, r.u.Tap)
		if !ok {
			continue
		}
		for x, err := range r.out.List(r.ctx, folder+r.u.ID+"-") {
			if err != nil {
				return err
			}
			if ours[x.Name] {
				continue
			}
			r.opt.Log("removing %s, which is not a result of the unit", x.Name)
			if err := r.out.Remove(r.ctx, x.Name); err != nil {
				return fmt.Errorf("%s: %w", x.Name, err)
			}
		}
	}
	return nil
}
