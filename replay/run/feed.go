package run

import (
	"fmt"
	"io"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// How much of a plan is in memory at a time.
const (
	// DefaultWindow is how many calls may be between the first that is not over and the last that
	// may be sent.
	DefaultWindow = 1 << 15
	// leastWindow is how many there are at least if clones share the window.
	leastWindow = 1 << 8
	// DefaultWindowText is how many bytes of the plan they may take.
	DefaultWindowText = 32 << 20
	// lookAhead is how many calls are read beyond those: the judge knows of them, since they may
	// have been in flight together with the others. They may take a quarter of the window's bytes.
	lookAhead = 1 << 12
	// batchOps and batchText are how much the reader's goroutine hands over at once.
	batchOps  = 64
	batchText = 1 << 20
)

// feed gives the ops of a plan to the schedule, as it has room for them. A plan in a file is read
// by a goroutine.
type feed struct {
	source  *workload.Source
	batches chan []item // nil: the ops are in memory
	quit    chan struct{}
	batch   []item // that is being taken
	ahead   queue
	eof     bool  // all has been read
	err     error // why no more can be read
	ops     int   // that were read
	left    workload.Reasons
	// places are where the ops of the window begin, the first of which is number first.
	places queue
}

// item is an op of a plan, or what is not replayed.
type item struct {
	op    *plan.Op
	skip  *plan.Skip
	text  int // bytes of its line
	place plan.Place
	err   error // instead of both; io.EOF at the end
}

// queue holds items in order.
type queue struct {
	list []item
	head int
	text int
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) put(x item) {
	q.list = append(q.list, x)
	q.text += x.text
}

func (q *queue) first() *item { return &q.list[q.head] }

func (q *queue) take() item {
	x := q.list[q.head]
	q.list[q.head] = item{}
	q.head++
	q.text -= x.text
	if q.head > len(q.list)/2 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	return x
}

// start begins to read.
func (f *feed) start(load *workload.Workload, from *plan.Place, wake func()) (err error) {
	if f.source, err = load.Read(); err != nil {
		return err
	}
	if from != nil {
		if err := f.source.Skip(*from); err != nil {
			return err
		}
	}
	if !load.Streams() {
		return nil
	}
	f.batches, f.quit = make(chan []item, 4), make(chan struct{})
	go f.read(wake)
	return nil
}

// read hands over what it reads, up to the end or an error.
func (f *feed) read(wake func()) {
	defer close(f.batches)
	for last := false; !last; {
		batch := make([]item, 0, batchOps)
		for text := 0; !last && len(batch) < batchOps && text < batchText; {
			x := f.one()
			text += x.text
			batch = append(batch, x)
			last = x.err != nil
		}
		select {
		case f.batches <- batch:
			wake()
		case <-f.quit:
			return
		}
	}
}

func (f *feed) one() item {
	o, s, err := f.source.Next()
	if err != nil {
		return item{err: err}
	}
	return item{op: o, skip: s, text: f.source.Size(), place: f.source.Place()}
}

// next is the next item; false if there is none yet.
func (f *feed) next() (item, bool) {
	if f.batches == nil {
		return f.one(), true
	}
	if len(f.batch) == 0 {
		select {
		case b, ok := <-f.batches:
			if !ok {
				return item{err: io.EOF}, true
			}
			f.batch = b
		default:
			return item{}, false
		}
	}
	x := f.batch[0]
	f.batch = f.batch[1:]
	return x, true
}

// await is next, and waits for it.
func (f *feed) await() item {
	if f.batches != nil && len(f.batch) == 0 {
		if b, ok := <-f.batches; ok {
			f.batch = b
		}
	}
	x, _ := f.next()
	return x
}

// close ends the reading.
func (f *feed) close() {
	if f.quit != nil {
		close(f.quit)
		for range f.batches { // until the goroutine has ended
		}
		f.quit = nil
	}
	if f.source != nil {
		_ = f.source.Close()
	}
}

// fillable reports whether there is something to fill a window of the given number of bytes with.
func (f *feed) fillable(text int) bool {
	return f.err == nil && (f.eof && f.ahead.len() > 0 || f.ahead.len() > lookAhead || f.ahead.text >= text/4 ||
		f.batches == nil || len(f.batch) > 0 || len(f.batches) > 0)
}

// exhausted reports whether the schedule has got all ops.
func (f *feed) exhausted() bool { return f.eof && f.ahead.len() == 0 }

// fill reads what there is room for.
func (e *engine) fill() {
	f := &e.feed
	for f.err == nil {
		for !f.eof && f.err == nil && f.ahead.len() <= lookAhead && f.ahead.text < e.opt.WindowText/4 {
			x, ok := f.next()
			if !ok {
				break
			}
			e.take(x)
		}
		enough := f.eof || f.ahead.len() > lookAhead || f.ahead.text >= e.opt.WindowText/4
		if !enough || f.ahead.len() == 0 || !e.roomy() {
			break
		}
		if err := e.plan(f.ahead.take()); err != nil {
			e.mistake(err)
			break
		}
	}
	for f.places.len() > 0 && (f.places.first().op.ID < e.sched.First()) {
		f.places.take()
	}
	if at, ok := e.sched.Since(); ok {
		e.judge.Forget(at)
	}
}

// take takes in what was read.
func (e *engine) take(x item) {
	f := &e.feed
	switch {
	case x.err == io.EOF:
		f.eof = true
	case x.err != nil:
		f.err = fmt.Errorf("the plan cannot be read any further: %w", x.err)
		e.stop("the plan cannot be read any further")
	case x.skip != nil:
		f.left.Skip(x.skip)
		if e.load.Streams() {
			e.judge.ReadSkip(x.skip)
		}
	default:
		f.ops++
		if e.load.Streams() {
			e.judge.Read(x.op, x.text)
		}
		e.record.Read(x.op, e.opt.Speed)
		workload.Uses(x.op, nfs4.OP_OPEN_CONFIRM, func(state int) { e.corrections.confirms[state] = true })
		workload.Uses(x.op, nfs4.OP_DELEGRETURN, func(state int) { e.delegations.returns[state] = x.op.Time })
		f.ahead.put(x)
	}
}

// roomy reports whether the window has room for another op.
func (e *engine) roomy() bool {
	n := e.sched.Len()
	return n == 0 || n < max(e.opt.Window/len(e.clones), min(leastWindow, e.opt.Window)) && e.sched.Text() < e.opt.WindowText
}

// plan adds an op to the schedule.
func (e *engine) plan(x item) error {
	e.count.left += len(e.clones)
	f := &e.feed
	f.places.put(item{op: x.op, place: x.place})
	var over func(int) bool
	if len(e.resumed.over) > 0 {
		over = func(w int) bool {
			was := e.wasOver(x.op.ID, w)
			if was {
				e.count.left--
			}
			return was
		}
	}
	return e.sched.Add(x.op, x.text, over)
}

// planned is how many calls there are, as far as the plan was read, or its header says.
func (e *engine) planned() int {
	n := e.feed.ops
	if !e.feed.eof {
		n = max(n, e.load.Planned())
	}
	return n * len(e.clones)
}
