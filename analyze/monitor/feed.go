package monitor

import (
	"errors"
	"io"
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
}

// errStopped means that the feed was stopped.
var errStopped = errors.New("stopped")

// Feed feeds the packets of a reader to a Model, on its own goroutine.
type Feed struct {
	m   *Model
	r   capture.Reader
	opt FeedOptions

	latest atomic.Pointer[Snapshot]
	notice chan struct{} // there is a new snapshot
	done   chan struct{}
	err    error

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

// wishes are requests to the feed. The goroutine of the Model handles them when it can.
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

// Watch is Model.Watch; a new snapshot follows immediately.
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
	if w.refilter {
		m.SetFilter(w.filter)
	}
	if w.interval > 0 {
		m.SetInterval(w.interval)
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
	if w.rehold {
		m.Hold(w.hold)
	}
	if w.rewatch {
		m.Watch(w.watch, w.width, w.plain)
	}
	f.skip = f.skip || w.skip
	f.publish()
}

// setLinger keeps ended transactions listed for a time of the viewer, not of the capture.
func (f *Feed) setLinger() {
	d := f.m.opt.Linger
	if f.opt.Speed <= 0 {
		d = -1 // at the end of a fast replay, the screen remains to be read
	} else if s := f.opt.Speed * float64(d); s < 1<<62 {
		d = time.Duration(s)
	}
	f.m.SetLinger(d)
}

func (f *Feed) publish() {
	begin := time.Now()
	s := f.m.Snapshot()
	s.Speed, s.Paced, s.Paused = f.opt.Speed, !f.opt.Live, f.paused
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
	free, full := make(chan *capture.Batch, 3), make(chan read, 3)
	for range cap(free) {
		free <- new(capture.Batch)
	}
	// Reading may block forever; its goroutine is then left behind.
	go func() {
		for b := range free {
			err := f.r.Read(b)
			full <- read{b, err}
			if err != nil {
				return
			}
		}
	}()
	if f.opt.Interval != nil {
		f.m.Every(func() {
			s := f.m.Snapshot()
			s.Speed, s.Paced = f.opt.Speed, !f.opt.Live
			if !f.ended && !f.opt.Interval(s) {
				f.ended = true
			}
		})
	}
	f.err = f.loop(free, full)
	close(free)
	if errors.Is(f.err, io.EOF) {
		f.err = nil
	}
	if !f.ended {
		f.m.Flush(f.err)
	}
	if errors.Is(f.err, errStopped) {
		f.err = nil
	}
	f.paused = false
	f.publish()
	close(f.done)
	for { // listed transactions can still be opened
		select {
		case <-f.wake:
			f.grant()
		case <-f.stop:
			return
		}
	}
}

// loop feeds packets until the input ends or the feed is stopped.
func (f *Feed) loop(free chan<- *capture.Batch, full <-chan read) error {
	var at read
	var list []capture.Packet // packets of at that are not yet decoded
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if f.ended {
			return errStopped
		}
		if time.Now().After(f.next) {
			f.tick()
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

// tick makes a snapshot from time to time. Time also advances without packets.
func (f *Feed) tick() {
	if f.anchored && f.opt.Speed > 0 && !f.paused {
		f.m.Advance(f.clock())
	}
	f.publish()
}

// most is how many packets are decoded before anything else is handled.
const most = 4096

// due is how many of the packets are to be decoded now; if none, wait is how long they can wait.
func (f *Feed) due(list []capture.Packet) (n int, wait time.Duration) {
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
