package monitor

import (
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/capture"
)

// FeedOptions control how packets reach a Model.
type FeedOptions struct {
	// Speed is the speed of a replay: 1 is real time, 2 twice as fast. 0 means as fast as possible.
	Speed float64
	// Live means that packets arrive as they are captured.
	Live    bool
	Refresh time.Duration // time between snapshots: 250ms
	// Interval, if set, is called with a snapshot whenever an interval is complete. If it returns false, the
	// feed ends. Decoding waits for it.
	Interval func(*Snapshot) bool
	// Reopen, if set, opens the input once more, from its beginning: Jump can go
	// back then, a filter set at the end of the input counts from its beginning,
	// and Page lists what is not held any more. Reading it waits for nobody.
	Reopen func() (capture.Reader, error)
}

// Ends of a pass before the input does: the feed was stopped; another pass begins.
var (
	errStopped = errors.New("stopped")
	errAgain   = errors.New("another pass")
)

// Feed feeds the packets of a reader to a Model, on its own goroutine.
type Feed struct {
	m   *Model
	r   capture.Reader
	opt FeedOptions

	latest atomic.Pointer[Snapshot]
	notice chan struct{} // there is a new snapshot
	done   chan struct{}
	err    error
	ending Ending

	// The pass after this one, once somebody wants it; and how far this one goes
	// without regard to speed.
	redo     *pass
	hurrying bool
	until    int64
	note     string // why a wish was not fulfilled

	mu    sync.Mutex
	asked wishes
	wake  chan struct{}
	stop  chan struct{}
	once  sync.Once

	// The capture clock: at wall time anchorWall it was anchorTime.
	anchored   bool
	anchorWall time.Time
	anchorTime int64
	last       int64 // time of the latest packet
	paused     bool
	skip       bool
	ended      bool // by Interval
	next       time.Time
}

// Ending is what is known at the end of the input, or where the feed was stopped
// before. Later passes do not change it.
type Ending struct {
	Snapshot *Snapshot
	Reader   capture.Reader // that was read to the end
}

// pass is one reading of the input.
type pass struct {
	r     capture.Reader
	m     *Model
	until int64
}

// wishes are what others want of the feed; the goroutine of the Model takes
// them when it can.
type wishes struct {
	filter   *filter.Filter
	refilter bool
	interval time.Duration
	speed    float64
	respeed  bool
	pause    bool
	repause  bool
	hold     bool
	rehold   bool
	watch    uint64
	width    int
	plain    bool
	rewatch  bool
	skip     bool
	seek     int64
	reseek   bool
	page     *uint64
	repage   bool
}

// Start starts to feed m with the packets of r. The caller closes r after Wait.
func Start(m *Model, r capture.Reader, opt FeedOptions) *Feed {
	if opt.Refresh <= 0 {
		opt.Refresh = 250 * time.Millisecond
	}
	if opt.Live {
		opt.Speed = 1
	}
	f := &Feed{
		m: m, r: r, opt: opt,
		notice: make(chan struct{}, 1), done: make(chan struct{}), wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	f.setLinger()
	f.publish()
	go f.run()
	return f
}

// Latest is the newest snapshot.
func (f *Feed) Latest() *Snapshot { return f.latest.Load() }

// Notice receives an element when Latest has changed.
func (f *Feed) Notice() <-chan struct{} { return f.notice }

// Done is closed at the end of the input.
func (f *Feed) Done() <-chan struct{} { return f.done }

// Stop ends the feed before the input does.
func (f *Feed) Stop() { f.once.Do(func() { close(f.stop) }) }

// Wait waits for the end and returns the error that ended reading; nil at the end of the input and after
// Stop.
func (f *Feed) Wait() error {
	<-f.done
	return f.err
}

func (f *Feed) ask(set func(*wishes)) {
	f.mu.Lock()
	set(&f.asked)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// SetFilter is Model.SetFilter.
func (f *Feed) SetFilter(x *filter.Filter) {
	f.ask(func(w *wishes) { w.filter, w.refilter = x, true })
}

// SetInterval is Model.SetInterval.
func (f *Feed) SetInterval(d time.Duration) { f.ask(func(w *wishes) { w.interval = d }) }

// SetSpeed changes the speed of a replay.
func (f *Feed) SetSpeed(speed float64) { f.ask(func(w *wishes) { w.speed, w.respeed = speed, true }) }

// Pause stops or resumes the time of a replay.
func (f *Feed) Pause(on bool) { f.ask(func(w *wishes) { w.pause, w.repause = on, true }) }

// Skip continues with the next packet at once.
func (f *Feed) Skip() { f.ask(func(w *wishes) { w.skip = true }) }

// Hold is Model.Hold.
func (f *Feed) Hold(on bool) { f.ask(func(w *wishes) { w.hold, w.rehold = on, true }) }

// Jump goes to a time of the capture, in ns since 1970, without regard to speed.
// Back is a new pass, and needs FeedOptions.Reopen. A replay that waits for nothing
// is paused there.
func (f *Feed) Jump(t int64) { f.ask(func(w *wishes) { w.seek, w.reseek = t, true }) }

// Page lists, once the input has ended, ended transactions in the order of their
// end, beginning with number from, which counts from 0 those that the filter lets
// pass: as many as there is room for. nil goes back to the list of the latest,
// slowest and failed ones. Both are a new pass.
func (f *Feed) Page(from *uint64) { f.ask(func(w *wishes) { w.page, w.repage = from, true }) }

// Ending is what is known at the end, after Wait.
func (f *Feed) Ending() Ending {
	<-f.done
	return f.ending
}

// Watch is Model.Watch; a new snapshot follows at once.
func (f *Feed) Watch(serial uint64, width int, plain bool) {
	f.ask(func(w *wishes) { w.watch, w.width, w.plain, w.rewatch = serial, width, plain, true })
}

// grant handles requests.
func (f *Feed) grant() {
	f.mu.Lock()
	w := f.asked
	f.asked = wishes{}
	f.mu.Unlock()
	m := f.m
	now := f.clock()
	f.note = ""
	// Another pass takes over the settings of this one, so they are changed first.
	if w.interval > 0 {
		m.SetInterval(w.interval)
	}
	if w.rehold {
		m.Hold(w.hold)
	}
	if w.rewatch {
		m.Watch(w.watch, w.width, w.plain)
	}
	x := m.filter
	switch {
	case w.refilter && m.flushed && f.opt.Reopen != nil:
		x = w.filter
		var page *uint64
		if m.linger.paging {
			page = new(uint64)
		}
		f.again(x, page, math.MaxInt64)
	case w.refilter:
		x = w.filter
		m.SetFilter(x)
	}
	switch {
	case w.reseek && f.opt.Live:
		f.note = "what is captured now has no other time"
	case w.reseek && !m.flushed && w.seek >= now:
		f.hurry(w.seek)
	case w.reseek:
		f.again(x, nil, w.seek)
	case w.repage && !m.flushed:
		f.note = "all transactions can be listed at the end of the input"
	case w.repage:
		f.again(x, w.page, math.MaxInt64)
	}
	if w.respeed && !f.opt.Live {
		f.opt.Speed = max(w.speed, 0)
		f.anchor(now)
		f.setLinger()
	}
	if w.repause && !f.opt.Live {
		f.paused = w.pause
		f.anchor(now)
	}
	f.skip = f.skip || w.skip
	f.publish()
}

// again opens the input for another pass, which begins when this one is left.
func (f *Feed) again(x *filter.Filter, page *uint64, until int64) {
	if f.opt.Reopen == nil {
		f.note = "this input cannot be read again"
		return
	}
	r, err := f.opt.Reopen()
	if err != nil {
		f.note = err.Error()
		return
	}
	if f.redo != nil {
		f.redo.r.Close()
	}
	f.redo = &pass{r, f.m.anew(x, page), until}
}

// hurry goes on without regard to speed up to a time.
func (f *Feed) hurry(until int64) {
	f.hurrying, f.until = true, until
	f.anchored, f.skip = false, false
	f.setLinger()
}

// arrived ends the hurry.
func (f *Feed) arrived() {
	f.hurrying, f.anchored = false, true
	f.anchor(f.until)
	f.m.Advance(f.until)
	f.paused = f.paused || f.opt.Speed <= 0
	f.setLinger()
}

// setLinger lets ended transactions stay listed for a time of the reader, not
// of the capture.
func (f *Feed) setLinger() {
	d := f.m.opt.Linger
	if f.opt.Speed <= 0 || f.hurrying {
		d = -1 // the end of a fast replay is a screen to be read
	} else if s := f.opt.Speed * float64(d); s < 1<<62 {
		d = time.Duration(s)
	}
	f.m.SetLinger(d)
}

func (f *Feed) publish() {
	begin := time.Now()
	s := f.m.Snapshot()
	s.Speed, s.Paced, s.Paused = f.opt.Speed, !f.opt.Live, f.paused
	s.Again, s.Note = f.hurrying, f.note
	f.note = "" // once is enough
	f.latest.Store(s)
	// Take large snapshots less often.
	now := time.Now()
	f.next = now.Add(max(f.opt.Refresh, 10*now.Sub(begin)))
	select {
	case f.notice <- struct{}{}:
	default:
	}
}

func (f *Feed) anchor(t int64) { f.anchorTime, f.anchorWall = t, time.Now() }

// clock is the current capture time.
func (f *Feed) clock() int64 {
	if !f.anchored || f.paused || f.opt.Speed <= 0 {
		return max(f.last, f.anchorTime)
	}
	d := float64(time.Since(f.anchorWall)) * f.opt.Speed
	if d > 1<<61 {
		d = 1 << 61
	}
	return f.anchorTime + int64(d)
}

// read is a batch coming from the reader.
type read struct {
	batch *capture.Batch
	err   error
}

func (f *Feed) run() {
	if f.opt.Interval != nil {
		f.m.Every(func() {
			s := f.m.Snapshot()
			s.Speed, s.Paced = f.opt.Speed, !f.opt.Live
			if !f.ended && !f.opt.Interval(s) {
				f.ended = true
			}
		})
	}
	for r := f.r; ; {
		if err := f.read(r); !errors.Is(err, errAgain) {
			f.over(err, r)
			if !f.idle() {
				if r != f.r {
					r.Close()
				}
				return
			}
		}
		if r != f.r {
			r.Close()
		}
		p := f.redo
		f.redo = nil
		r, f.m, f.last, f.anchorTime = p.r, p.m, 0, 0
		f.hurry(p.until)
	}
}

// read feeds one pass.
func (f *Feed) read(r capture.Reader) error {
	free, full := make(chan *capture.Batch, 3), make(chan read, 3)
	for range cap(free) {
		free <- new(capture.Batch)
	}
	// Reading may wait for ever, and is left alone then.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for b := range free {
			err := r.Read(b)
			full <- read{b, err}
			if err != nil {
				return
			}
		}
	}()
	err := f.loop(free, full)
	close(free)
	if f.opt.Reopen != nil {
		<-gone // it does not wait, and the reader is going to be closed
	}
	return err
}

// over ends a pass that nobody has left. What others wait for is the first one.
func (f *Feed) over(err error, r capture.Reader) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if !f.ended {
		f.m.Flush(err)
	}
	if errors.Is(err, errStopped) {
		err = nil
	}
	f.paused, f.hurrying = false, false
	f.publish()
	if f.ending.Snapshot == nil {
		f.err, f.ending = err, Ending{f.latest.Load(), r}
		close(f.done)
	}
}

// idle fulfils wishes after the end, as what is listed can still be looked into,
// until somebody wants another pass, or the end.
func (f *Feed) idle() (again bool) {
	for f.redo == nil {
		select {
		case <-f.wake:
			f.grant()
		case <-f.stop:
			return false
		}
	}
	return true
}

// loop feeds packets until the input ends or the feed is stopped.
func (f *Feed) loop(free chan<- *capture.Batch, full <-chan read) error {
	var at read
	var list []capture.Packet // packets of at that are not yet decoded
	waited := false           // for packets that did not come
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		switch {
		case f.ended:
			return errStopped
		case f.redo != nil:
			return errAgain
		}
		if time.Now().After(f.next) {
			f.tick(list, waited)
		}
		if len(list) > 0 {
			n, wait := f.due(list)
			if n > 0 {
				f.m.Packets(list[:n])
				f.last = max(f.last, list[n-1].Time)
				if list = list[n:]; len(list) == 0 {
					free <- at.batch
				}
				if f.quick() {
					return errStopped
				}
				continue
			}
			timer.Reset(min(wait, time.Until(f.next)+time.Millisecond))
			select {
			case <-timer.C:
			case <-f.wake:
				f.grant()
			case <-f.stop:
				return errStopped
			}
			continue
		}
		timer.Reset(max(time.Until(f.next), 0) + time.Millisecond)
		waited = false
		select {
		case at = <-full:
			if at.err != nil {
				return at.err
			}
			list = at.batch.Packets
			if len(list) == 0 {
				free <- at.batch
			}
		case <-timer.C:
			waited = len(full) == 0
		case <-f.wake:
			f.grant()
		case <-f.stop:
			return errStopped
		}
	}
}

// quick handles requests and the end without blocking.
func (f *Feed) quick() bool {
	select {
	case <-f.stop:
		return true
	case <-f.wake:
		f.grant()
	default:
	}
	return false
}

// tick makes a snapshot from time to time. Time also advances without packets: up to the next one, and beyond the last one while a
// network or a pipe is silent. It does not depend on how fast packets are read and decoded.
func (f *Feed) tick(list []capture.Packet, waited bool) {
	if f.anchored && f.opt.Speed > 0 && !f.paused && !f.hurrying {
		switch t := f.clock(); {
		case len(list) > 0:
			f.m.Advance(min(t, max(list[0].Time, f.last)))
		case waited && f.opt.Reopen == nil:
			f.m.Advance(t)
		}
	}
	f.publish()
}

// most is how many packets are decoded before anything else is handled.
const most = 4096

// due is how many of the packets are to be decoded now; if none, wait is how long they can wait.
func (f *Feed) due(list []capture.Packet) (n int, wait time.Duration) {
	if f.hurrying {
		for n < min(len(list), most) && list[n].Time < f.until {
			n++
		}
		if n > 0 {
			return n, 0
		}
		f.arrived()
	}
	if f.paused {
		if !f.skip {
			return 0, time.Hour
		}
		f.skip = false
		f.anchor(list[0].Time)
		return 1, 0
	}
	if f.opt.Speed <= 0 {
		return min(len(list), most), 0
	}
	first := list[0].Time
	if !f.anchored || f.skip {
		f.anchored, f.skip = true, false
		f.anchor(first)
	}
	now := f.clock()
	lag := float64(now - first)
	if lag > late*f.opt.Speed || lag < -far {
		// It came late, or the clock jumped: continue from here.
		if lag > 0 || f.opt.Live {
			f.anchor(first)
			now = first
		}
	}
	if f.opt.Live {
		if first > now {
			f.anchor(first)
		}
		return min(len(list), most), 0
	}
	for n < min(len(list), most) && list[n].Time <= now {
		n++
	}
	if n > 0 {
		return n, 0
	}
	d := float64(first-now) / f.opt.Speed
	if d > float64(time.Hour) {
		return 0, time.Hour
	}
	return 0, time.Duration(d) + 1
}

const (
	late = 1e9 // wall time in ns that packets may be late
	far  = 3600e9
)
