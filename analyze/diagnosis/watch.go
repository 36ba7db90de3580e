package diagnosis

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/rpcrdma/toolkit/analyze/adapter"
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
	most   int                           // of lanes
	older  map[*rdma.Connection]*[2]lane // with Options.Live: traffic before the current interval, which is in lanes
	latest map[int]*[2]lane              // traffic of the latest complete interval, by connection number
	spare  []*[2]lane
	pauses pauses

	refusals uint64 // for want of a buffer; only Saw uses it
	shut     int    // windows of TCP that are closed
}

// pauses is what was seen of Ethernet flow control.
type pauses struct {
	list []still
	now  rdma.Stopped
}

// maxPauses bounds pauses.list.
const maxPauses = 1 << 16

// take notes a frame that stops for some quanta, or ends a stop.
func (p *pauses) take(quanta uint16, at int64) {
	if ended, _ := p.now.Take(quanta, at); ended.Frames > 0 && len(p.list) < maxPauses {
		p.list = append(p.list, still{ended.Since, max(min(at, ended.Until), ended.Since)})
	}
}

// lane is one direction of a connection: the data that a side sent.
type lane struct {
	bytes       uint64
	first, last rdma.Ref
	paces       [paceClasses]pace
	chunks      [paceClasses]pace // the same of chunkLeast bytes and more, in which jitter does not count
	chunk       uint64
	chunkFrom   int64
	cnps        int // that asked its sender to slow down
	cnpFirst    int64
	cnpLast     int64
	sinceCNP    uint64 // bytes sent since the first
	paced       pace   // of them, what went on with a message
	marked      uint64
	zeroWindow  uint64
	rnrs        uint64  // that it sent
	late        uint64  // packets lost before the capture point, or overtaken
	between     uint64  // lost between two capture points
	seen        uint64  // sent again that had been seen
	againFirst  int64   // when one was first sent again, or came late
	reread      uint64  // Read Requests that had been seen: they or their responses were lost
	refused     []still // when its Sends found no buffer, until they were sent again
	refusedAt   int64   // since when one waits, if it does; its number
	refusedPSN  uint32
}

// unseen is how often a packet may have been lost before the capture point.
func (l *lane) unseen() uint64 { return l.late + l.reread }

// maxRefused is how many refusals of a direction are remembered.
const maxRefused = 1 << 12

// refuse notes that a Send of the lane found no buffer.
func (l *lane) refuse(psn uint32, at int64) {
	if l.refusedAt == 0 || l.refusedPSN != psn {
		l.refusedAt, l.refusedPSN = at, psn
	}
}

// again notes that a request was sent, perhaps one that was refused.
func (l *lane) again(psn uint32, at int64) {
	if psn != l.refusedPSN {
		return
	}
	if len(l.refused) < maxRefused {
		l.refused = append(l.refused, still{l.refusedAt, at})
	}
	l.refusedAt = 0
}

// noPSN is no packet sequence number: a window of TCP is closed.
const noPSN = 1 << 31

// close notes that the receiver of the lane has closed its window of TCP; ok is false if it was.
func (l *lane) close(at int64) (ok bool) {
	if l.refusedAt != 0 && l.refusedPSN == noPSN {
		return false
	}
	l.refusedAt, l.refusedPSN = at, noPSN
	return true
}

// open notes that the window is not closed; ok is false if it was not.
func (l *lane) open(at int64) (ok bool) {
	if l.refusedAt == 0 || l.refusedPSN != noPSN {
		return false
	}
	l.again(noPSN, at)
	return true
}

// repeated notes a packet that was sent again, or came late.
func (l *lane) repeated(s *rdma.Sighting) {
	l.againFirst = earlier(l.againFirst, s.Ref.Time)
	switch {
	case s.Novelty == rdma.NoveltyLate:
		l.late++
	case s.Read:
		l.reread++
	default:
		l.seen++
	}
}

// pace sums up packets that followed on one before at about the same rate.
type pace struct {
	bytes uint64
	time  int64
}

const paceClasses = 128

// dataLeast is the least payload of a packet that tells a rate.
const dataLeast = 512

// chunkLeast is how many bytes make a chunk.
const chunkLeast = 16 << 10

// data notes a packet of a lane with n bytes of data; inside says that it goes on with a message.
func (l *lane) data(n uint32, ref rdma.Ref, inside bool) {
	if gap := ref.Time - l.last.Time; l.last.Seen() && gap > 0 {
		p := &l.paces[paceOf(n, gap)]
		p.bytes += uint64(n)
		p.time += gap
		if inside && l.cnps > 0 {
			l.paced.bytes += uint64(n)
			l.paced.time += gap
		}
	}
	if !l.first.Seen() {
		l.first, l.chunkFrom = ref, ref.Time
	} else if l.chunk += uint64(n); l.chunk >= chunkLeast {
		if gap := ref.Time - l.chunkFrom; gap > 0 {
			p := &l.chunks[paceOf(uint32(min(l.chunk, 1<<31)), gap)]
			p.bytes += l.chunk
			p.time += gap
		}
		l.chunk, l.chunkFrom = 0, ref.Time
	}
	l.last = ref
	l.bytes += uint64(n)
	if l.cnps > 0 {
		l.sinceCNP += uint64(n)
	}
}

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
	refused := w.refusals > 0 && s.Class == rdma.ClassRequest
	again := s.Novelty >= rdma.NoveltyLate
	if s.Bytes < dataLeast && s.Class != rdma.ClassCNP && s.Class != rdma.ClassRNR && !s.Marked && !s.ZeroWindow && !refused && !again && w.shut == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.known
	if w.last != c {
		if l = w.lanes[c]; l == nil {
			if l = w.lane(c); l == nil {
				return
			}
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
		mine.rnrs++
		w.refusals++
		l[s.From.Other()&1].refuse(s.PSN, s.Ref.Time)
		return
	case s.ZeroWindow:
		mine.zeroWindow++
		if l[s.From.Other()&1].close(s.Ref.Time) {
			w.shut++
		}
	case w.shut > 0 && l[s.From.Other()&1].open(s.Ref.Time):
		w.shut--
	case refused && mine.refusedAt != 0:
		mine.again(s.PSN, s.Ref.Time)
	}
	if s.Marked {
		mine.marked++
	}
	if again {
		mine.repeated(s)
	}
	if s.Bytes < dataLeast {
		return
	}
	mine.data(s.Bytes, s.Ref, s.Inside)
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
	w.last, w.known = nil, nil
	for _, m := range [...]map[*rdma.Connection]*[2]lane{w.lanes, w.older} {
		join(m, into, side, from, was)
	}
}

// join moves the traffic of a connection to the one that it has become part of.
func join(m map[*rdma.Connection]*[2]lane, into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	old := m[from]
	delete(m, from)
	if old == nil {
		return
	}
	l := m[into]
	if l == nil {
		l = new([2]lane)
		m[into] = l
	}
	for i := range l {
		a, b := &l[(int(side)+i)&1], &old[(int(was)+i)&1]
		if a.bytes == 0 && a.cnps == 0 {
			*a = *b
		}
	}
}

// pace returns how long the sender takes for a KiB after the first CNP, in nanoseconds. Only gaps within messages count, because the sender may
// have had nothing to send between messages.
func (l *lane) pace() float64 { return float64(l.paced.time) * 1024 / float64(max(l.paced.bytes, 1)) }

// fastest is the rate of the fastest tenth of the data, in nanoseconds for a KiB; 0 if there is too little.
func (l *lane) fastest() float64 { return fastest(&l.paces) }

func fastest(paces *[paceClasses]pace) float64 {
	var sum, all uint64
	var took int64
	for i := range paces {
		all += paces[i].bytes
	}
	if all < 16<<10 {
		return 0
	}
	for i := range paces {
		sum += paces[i].bytes
		took += paces[i].time
		if sum >= all/10 && sum >= 4<<10 {
			return float64(took) * 1024 / float64(sum)
		}
	}
	return 0
}

// usual is the rate at which most chunks followed, and how much time it took at that rate, a quarter more or less.
func (l *lane) usual() (perKiB float64, took int64) {
	best, most := -1, uint64(0)
	for i := range l.chunks {
		if n := l.chunks[i].bytes; n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		return 0, 0
	}
	var bytes uint64
	for i := max(best-1, 0); i <= min(best+1, paceClasses-1); i++ {
		bytes += l.chunks[i].bytes
		took += l.chunks[i].time
	}
	return float64(took) * 1024 / float64(bytes), took
}

// laneSize is how many bytes the lanes of a connection take.
const laneSize = int(unsafe.Sizeof([2]lane{}))

// Attach lets a decoder find out what the diagnosis is made of. memory is fabric.Options.Memory, and bounds the lanes of connections as well;
// sessions may be nil, else it finds out about slots, perhaps among other things.
func (r *Recorder) Attach(opt *decode.Options, memory int, sessions *session.Recorder) {
	b := blame.New(fabric.Options{Lean: true, Live: r.opt.Live, Memory: memory})
	r.watch = &watcher{Recorder: b.Recorder, lanes: make(map[*rdma.Connection]*[2]lane), most: min(r.opt.Connections, max(cmp.Or(memory, fabric.DefaultMemory)/laneSize, 1))}
	opt.Observe(decode.Observer{Watcher: r.watch, Runs: r.watch, Attempt: r.attempt, Event: r.event})
	opt.Observe(r.adapters.Observer())
	if sessions == nil {
		sessions = session.New(nil)
		sessions.Live()
		sessions.SlotsOnly()
		if memory > 0 {
			sessions.Limit(memory)
		}
	}
	opt.Observe(sessions.Observer())
	opt.Transactions.Ended = func(tx *transaction.Transaction) {
		b.Ended(tx)
		sessions.Ended(tx)
	}
}

// Adapters returns the Recorder of the adapters' counters.
func (r *Recorder) Adapters() *adapter.Recorder { return r.adapters }

// Fabric returns the Recorder of RDMA delays and losses, after Attach.
func (r *Recorder) Fabric() *fabric.Recorder { return r.watch.Recorder }

// copied is what the sides of each connection have sent so far.
func (w *watcher) copied() map[int]*[2]lane {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := make(map[int]*[2]lane, max(len(w.lanes), len(w.older)))
	for c, l := range w.older {
		m[c.ID] = copyOf(l)
	}
	for c, l := range w.lanes {
		if before := m[c.ID]; before != nil {
			before[0].add(&l[0])
			before[1].add(&l[1])
			continue
		}
		m[c.ID] = copyOf(l)
	}
	return m
}

func copyOf(l *[2]lane) *[2]lane {
	x := *l
	return &x
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
