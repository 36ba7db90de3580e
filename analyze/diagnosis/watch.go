package diagnosis

import (
	"math"
	"slices"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// watcher tells a fabric.Recorder of all packets, and looks itself at those that carry data.
type watcher struct {
	*fabric.Recorder

	mu     sync.Mutex // Report may be asked for while packets come
	last   *rdma.Connection
	known  *[2]lane
	lanes  map[*rdma.Connection]*[2]lane
	pauses pauses
}

// pauses is what was seen of Ethernet flow control.
type pauses struct {
	list  []still
	since int64 // when it was stopped, if it is
	until int64 // when the newest stop ends by itself, at the latest
}

// Limits of pauses.
const (
	maxPauses    = 1 << 16
	pauseQuantum = 512 // nanoseconds, at 1 Gb/s
)

// take notes a frame that stops for some quanta, or ends a stop.
func (p *pauses) take(quanta uint16, at int64) {
	if p.since != 0 && (quanta == 0 || at > p.until) {
		if len(p.list) < maxPauses {
			p.list = append(p.list, still{p.since, max(min(at, p.until), p.since)})
		}
		p.since = 0
	}
	if quanta == 0 {
		return
	}
	if p.since == 0 {
		p.since = at
	}
	p.until = at + int64(quanta)*pauseQuantum
}

// maxLanes is how many connections the watcher follows.
const maxLanes = 8192

// lane is one direction of a connection: the data that a side sent.
type lane struct {
	bytes       uint64
	first, last rdma.Ref
	paces       [paceClasses]pace
	cnps        int // that asked its sender to slow down
	cnpFirst    int64
	cnpLast     int64
	sinceCNP    uint64 // bytes sent since the first
	marked      uint64
	zeroWindow  uint64
	rnrs        uint64
}

// pace sums up packets that followed on one before at about the same rate.
type pace struct {
	bytes uint64
	time  int64
}

const paceClasses = 128

// dataLeast is the least payload of a packet that tells a rate.
const dataLeast = 512

// paceOf is the class of a rate: four to the octave, by nanoseconds for a KiB.
func paceOf(bytes uint32, gap int64) int {
	if gap <= 0 {
		return 0
	}
	x := math.Log2(float64(gap)*1024/float64(bytes)) * 4
	return min(max(int(x)+8, 0), paceClasses-1)
}

// Saw implements rdma.Watcher.
func (w *watcher) Saw(c *rdma.Connection, s *rdma.Sighting) {
	w.Recorder.Saw(c, s)
	if s.Bytes < dataLeast && s.Class != rdma.ClassCNP && s.Class != rdma.ClassRNR && !s.Marked && !s.ZeroWindow {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.known
	if w.last != c {
		if l = w.lanes[c]; l == nil {
			if len(w.lanes) >= maxLanes {
				return
			}
			l = new([2]lane)
			w.lanes[c] = l
		}
		w.last, w.known = c, l
	}
	mine := &l[s.From&1]
	switch {
	case s.Class == rdma.ClassCNP:
		peer := &l[s.From.Other()&1]
		if peer.cnps++; peer.cnps == 1 {
			peer.cnpFirst = s.Ref.Time
		}
		peer.cnpLast = s.Ref.Time
		return
	case s.Class == rdma.ClassRNR:
		l[s.From&1].rnrs++
		return
	case s.ZeroWindow:
		mine.zeroWindow++
	}
	if s.Marked {
		mine.marked++
	}
	if s.Bytes < dataLeast {
		return
	}
	if gap := s.Ref.Time - mine.last.Time; mine.last.Seen() && gap > 0 {
		p := &mine.paces[paceOf(s.Bytes, gap)]
		p.bytes += uint64(s.Bytes)
		p.time += gap
	}
	if !mine.first.Seen() {
		mine.first = s.Ref
	}
	mine.last = s.Ref
	mine.bytes += uint64(s.Bytes)
	if mine.cnps > 0 {
		mine.sinceCNP += uint64(s.Bytes)
	}
}

// Paused implements rdma.Watcher.
func (w *watcher) Paused(p *rdma.Pause, ref rdma.Ref) {
	w.Recorder.Paused(p, ref)
	w.mu.Lock()
	defer w.mu.Unlock()
	most := uint16(0)
	for i, q := range p.Quanta {
		if !p.PerPriority || p.Priorities&(1<<i) != 0 {
			most = max(most, q)
		}
	}
	w.pauses.take(most, ref.Time)
}

// Merged implements rdma.Watcher.
func (w *watcher) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	w.Recorder.Merged(into, side, from, was)
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.lanes[from]
	delete(w.lanes, from)
	w.last, w.known = nil, nil
	if old == nil {
		return
	}
	l := w.lanes[into]
	if l == nil {
		l = new([2]lane)
		w.lanes[into] = l
	}
	for i := range l {
		a, b := &l[(int(side)+i)&1], &old[(int(was)+i)&1]
		if a.bytes == 0 && a.cnps == 0 {
			*a = *b
		}
	}
}

// fastest is the rate of the fastest tenth of the data, in nanoseconds for a KiB; 0 if there is too little.
func (l *lane) fastest() float64 {
	var sum, all uint64
	var took int64
	for i := range l.paces {
		all += l.paces[i].bytes
	}
	if all < 16<<10 {
		return 0
	}
	for i := range l.paces {
		sum += l.paces[i].bytes
		took += l.paces[i].time
		if sum >= all/10 && sum >= 4<<10 {
			return float64(took) * 1024 / float64(sum)
		}
	}
	return 0
}

// usual is the rate at which most data followed, and how much time it took at that rate, a quarter more or less.
func (l *lane) usual() (perKiB float64, took int64) {
	best, most := -1, uint64(0)
	for i := range l.paces {
		if n := l.paces[i].bytes; n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		return 0, 0
	}
	var bytes uint64
	for i := max(best-1, 0); i <= min(best+1, paceClasses-1); i++ {
		bytes += l.paces[i].bytes
		took += l.paces[i].time
	}
	return float64(took) * 1024 / float64(bytes), took
}

// Attach lets a decoder find out what the diagnosis is made of. memory is fabric.Options.Memory; sessions
// may be nil, else it finds out about slots, perhaps among other things.
func (r *Recorder) Attach(opt *decode.Options, memory int, sessions *session.Recorder) {
	b := blame.Lean(memory)
	r.watch = &watcher{Recorder: b.Recorder, lanes: make(map[*rdma.Connection]*[2]lane)}
	opt.Observe(decode.Observer{Watcher: r.watch, Runs: r.watch})
	if sessions == nil {
		sessions = session.New(nil)
		sessions.Live()
		sessions.SlotsOnly()
	}
	opt.Observe(sessions.Observer())
	opt.Transactions.Ended = func(tx *transaction.Transaction) {
		b.Ended(tx)
		sessions.Ended(tx)
	}
}

// copied is what the sides of each connection have sent so far.
func (w *watcher) copied() map[int]*[2]lane {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := make(map[int]*[2]lane, len(w.lanes))
	for c, l := range w.lanes {
		x := *l
		m[c.ID] = &x
	}
	return m
}

// pausesSeen are the times in which frames have stopped senders.
func (r *Recorder) pausesSeen() []still {
	if r.watch == nil {
		return nil
	}
	r.watch.mu.Lock()
	defer r.watch.mu.Unlock()
	return slices.Clone(r.watch.pauses.list)
}
