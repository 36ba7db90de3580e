// Package tcp puts TCP segments back in order, one direction of a connection at a time. A capture may lack
// segments, or the ends of segments. The package reports such losses, with the exact number of bytes, instead
// of waiting or guessing.
package tcp

import "github.com/rpcrdma/toolkit/decode/rdma"

// TCP flags that Segment looks at.
const (
	FIN = 0x01
	SYN = 0x02
	RST = 0x04
	ACK = 0x10
)

const (
	// window is how far from the stream a segment may be: the largest window
	// that TCP can announce (RFC 7323 section 2.3).
	window = 1 << 30
	// strays is how many consecutive segments, each continuing the previous one but far from the stream,
	// start a new stream: the SYN was not captured.
	strays = 8
	// nearby is how far after a bare acknowledgment of the sender the first data may be without being the
	// start of the stream.
	nearby = 1 << 20
	// inFlight is more than a sender has in flight at once. An acknowledgment that is this much further than the one before it does
	// not tell what the capture lacks.
	inFlight = 1 << 24
	// near is how far the acknowledgment number of a repeated segment may be from the position of the peer's stream.
	near = 1 << 22
)

// Stream is one direction of a TCP connection. Init makes it ready. It is not
// safe for concurrent use.
type Stream struct {
	consumer Consumer
	pool     *Pool
	queue    *queue // pieces waiting after a gap; nil if there are none

	next    uint64 // offset of the next byte to deliver
	acked   uint64 // the receiver has acknowledged up to this offset
	owed    uint64 // and up to this one in steps that can have been in flight
	fin     uint64 // offset at which the stream ends, if finSeen
	base    uint32 // sequence number of offset 0
	outlier uint32 // sequence number after the last segment far from the stream
	strays  uint8

	prints   []print // of the segments delivered last: prints[printed%maxPrints]
	printed  uint64
	odd      uint8  // consecutive segments with other bytes than before
	oddNext  uint32 // sequence number after them
	oddSeq   uint32 // of the first
	oddLen   int
	oddRef   rdma.Ref
	oddFirst []byte // what was captured of it

	state   state
	finSeen bool
	ackSeen bool
	belongs bool   // see Belongs
	gaps    [8]gap // given up last, without those that the capture cut
	gapAt   uint8
	stats   Stats
}

type state uint8

const (
	idle    state = iota
	located       // only bare acknowledgments were seen: base is the position of the sender
	running
	ended
)

// Init makes s ready for a new stream. The pool may be shared by all streams of
// a goroutine.
func (s *Stream) Init(p *Pool, c Consumer) {
	s.Release()
	*s = Stream{pool: p, consumer: c}
}

// NewStream makes a stream that is ready for use.
func NewStream(p *Pool, c Consumer) *Stream {
	return &Stream{pool: p, consumer: c}
}

// Segment takes a segment of this direction: its sequence number, its flags,
// the captured part of its payload, and the payload's declared length in bytes.
func (s *Stream) Segment(seq uint32, flags uint8, p []byte, n int, ref rdma.Ref) {
	// The usual case first: the next bytes, and nothing is waiting.
	if s.state == running && seq == s.sequence() && flags&(FIN|SYN|RST) == 0 && s.queue == nil && !s.finSeen && uint(n)-1 < window && len(p) <= n {
		s.stats.Segments++
		s.strays = 0
		s.remember(s.next, p, n)
		s.deliver(p, n, ref, ref)
		return
	}
	n = max(n, 0)
	p = p[:min(n, len(p))]
	if n == 0 && flags&(FIN|SYN|RST) == 0 {
		s.bare(seq)
		return
	}
	s.stats.Segments++
	if flags&RST != 0 {
		s.rst(seq, ref)
		return
	}
	if flags&SYN != 0 {
		seq++
		s.syn(seq, ref)
		if n == 0 && flags&FIN == 0 {
			return
		}
	}
	s.start(seq)
	fin := flags&FIN != 0
	d := int(int32(seq - s.sequence()))
	// RFC 9293 section 3.8.4: a keep-alive has the last acknowledged sequence
	// number, with nothing or one byte of garbage.
	if d == -1 && n <= 1 && !fin {
		s.stats.KeepAlives++
		return
	}
	if s.outside(d, n) {
		if !s.strayed(seq, n, ref) {
			return
		}
		d = 0
	}
	s.strays = 0
	a := int64(s.next) + int64(d)
	b := a + int64(n)
	if n > 0 && s.data(seq, a, b, p, ref) {
		return
	}
	if fin {
		s.end(b, ref)
	}
}

// outside reports whether a segment of n bytes, d bytes after the next one to be delivered, cannot be part of
// the stream.
func (s *Stream) outside(d, n int) bool {
	return d > window || d < -window || n > window || s.pastEnd(d+n)
}

// data takes the payload of a segment, the bytes [a, b), of which p was captured. It reports whether the
// segment was taken for a part of another stream.
func (s *Stream) data(seq uint32, a, b int64, p []byte, ref rdma.Ref) (other bool) {
	n := int(b - a)
	if a < 0 { // before the first byte that was seen
		early := min(-a, int64(n))
		s.stats.Early += uint64(early)
		p = p[min(int(early), len(p)):]
		a += early
	}
	if a >= 0 && uint64(b) <= s.next && s.repeated(seq, uint64(a), p, n, ref) {
		return true
	}
	if b > 0 {
		s.take(uint64(a), uint64(b), p, ref)
	}
	return false
}

// end notes that the stream ends at offset b, unless bytes after that have been seen.
func (s *Stream) end(b int64, ref rdma.Ref) {
	if s.finSeen || b < int64(s.next) || s.queue != nil && b < int64(s.queue.last().end) {
		return
	}
	s.finSeen = true
	s.fin = uint64(b)
	s.checkEnd(ref)
	s.settle(ref)
}

// Belongs says whether the acknowledgment number of the segment that follows shows that it is of this connection. Then
// it is not part of another stream, even if it repeats sequence numbers with other bytes.
func (s *Stream) Belongs(yes bool) { s.belongs = yes }

// Knows reports whether an acknowledgment number is near to what the stream has delivered: by chance 1 of 512 is.
func (s *Stream) Knows(ack uint32) bool {
	d := int32(ack - s.sequence())
	return s.state >= running && d > -near && d < near
}

// Acked handles an acknowledgment number that the receiver sent in packet ref. The receiver has everything
// before it: what the capture lacks of that will not arrive.
func (s *Stream) Acked(ack uint32, ref rdma.Ref) {
	if s.state != running {
		return
	}
	s.ackSeen = true
	d := int32(ack - s.sequence())
	if d <= 0 {
		return
	}
	if d > window {
		s.stats.Ignored++
		return
	}
	if to := s.next + uint64(d); to > s.acked {
		if to-max(s.acked, s.next) <= inFlight {
			s.owed = to
		}
		s.acked = to
		if s.queue != nil || s.finSeen {
			s.settle(ref)
		}
	}
}

// Flush ends all waiting, for example at the end of the capture: what is buffered is delivered, with a Skip
// for each gap. What the receiver has acknowledged behind the last byte is a gap, too; one byte more is a FIN.
func (s *Stream) Flush(ref rdma.Ref) {
	for s.queue != nil {
		s.skip(s.queue.at(0).start, Over, ref)
		s.drain(ref)
	}
	if s.finSeen && s.state == running {
		s.skip(s.fin, Over, ref)
		s.checkEnd(ref)
	}
	if s.state == running && s.owed > s.next+1 {
		s.skip(s.owed, Over, ref)
	}
}

// Release gives the stream's memory back to the pool; what was buffered is
// gone.
func (s *Stream) Release() {
	if s.queue != nil {
		for s.queue.len() > 0 {
			s.pool.put(s.queue.pop())
		}
		s.pool.putQueue(s.queue)
		s.queue = nil
	}
}

// Started reports whether the position of the stream in the sequence space is known.
func (s *Stream) Started() bool { return s.state >= running }

// Ended reports whether the sender has closed the stream.
func (s *Stream) Ended() bool { return s.state == ended }

// Next is the offset of the next byte to be delivered.
func (s *Stream) Next() uint64 { return s.next }

// Buffered is the number of bytes of memory that hold what waits after a gap.
func (s *Stream) Buffered() int {
	if s.queue == nil {
		return 0
	}
	return s.queue.bytes
}

// Stats returns the counts so far.
func (s *Stream) Stats() Stats { return s.stats }

// Sequence is the sequence number of the byte at an offset.
func (s *Stream) Sequence(offset uint64) uint32 { return s.base + uint32(offset) }

// sequence is the sequence number of the next byte to be delivered.
func (s *Stream) sequence() uint32 { return s.base + uint32(s.next) }

// bare takes a segment without payload.
func (s *Stream) bare(seq uint32) {
	switch {
	case s.state == running && seq == s.sequence()-1:
		s.stats.KeepAlives++
	case s.state <= located:
		s.state = located
		s.base = seq
	}
}

// start makes the first segment the start of the stream.
func (s *Stream) start(seq uint32) {
	switch s.state {
	case idle:
		s.base = seq
	case located:
		// The bare segment shows that data in between is missing from the capture, or will arrive out of
		// order. There is one byte less if it was a keep-alive.
		if d := int32(seq - s.base); d < 2 || d > nearby {
			s.base = seq
		}
	default:
		return
	}
	s.state = running
}

// syn handles a SYN that puts the first byte at seq.
func (s *Stream) syn(seq uint32, ref rdma.Ref) {
	if s.state == running || s.state == ended {
		if seq == s.base {
			return // sent again, or captured late
		}
		s.restart(ref)
	}
	s.base = seq
	s.state = running
}

// restart replaces the stream by another one.
func (s *Stream) restart(ref rdma.Ref) {
	s.Flush(ref)
	s.stats.Resets++
	s.consumer.Reset(ref)
	*s = Stream{pool: s.pool, consumer: s.consumer, stats: s.stats}
}

func (s *Stream) rst(seq uint32, ref rdma.Ref) {
	if s.state == running {
		if d := int(int32(seq - s.sequence())); d > window || d < -window {
			s.stats.Ignored++
			return
		}
	}
	if s.state == ended {
		return
	}
	s.Flush(ref)
	if s.state != ended {
		s.state = ended
		s.consumer.End(s.next, ByReset, ref)
	}
}

// pastEnd reports whether a segment that ends d bytes after the next one to be
// delivered is beyond the end of the stream.
func (s *Stream) pastEnd(d int) bool {
	if s.state == ended {
		return d > 0
	}
	return s.finSeen && d > int(s.fin-s.next)
}

// strayed handles a segment that cannot be part of the stream, and reports whether it belongs to a new one.
func (s *Stream) strayed(seq uint32, n int, ref rdma.Ref) bool {
	s.stats.Ignored++
	if n == 0 || n > window {
		return false
	}
	if s.strays == 0 || seq != s.outlier {
		s.strays = 0
	}
	s.strays++
	s.outlier = seq + uint32(n)
	if s.strays < strays {
		return false
	}
	s.restart(ref)
	s.base = seq
	s.state = running
	return true
}

// take delivers or buffers the new part of [a, b). p is the captured part. Where segments overlap, the first
// version is delivered.
func (s *Stream) take(a, b uint64, p []byte, ref rdma.Ref) {
	from := a
	part := func(a, b uint64) []byte {
		lo, hi := min(a-from, uint64(len(p))), min(b-from, uint64(len(p)))
		return p[lo:hi:hi]
	}
	var again struct{ at, n uint64 } // adjacent pieces are joined: one call for each run
	seen := func(at, n uint64) {
		if again.n > 0 && again.at+again.n != at {
			s.again(again.at, again.n, ref)
			again.n = 0
		}
		if again.n == 0 {
			again.at = at
		}
		again.n += n
	}
	for a < b {
		if a < s.next {
			to := min(b, s.next)
			if to < b && s.differs(a, part(a, to), int(to-a)) {
				s.stats.Differing++
				s.consumer.Differs(a, int(to-a), ref)
			}
			s.stats.Late += s.givenUp(a, to)
			seen(a, to-a)
			a = to
			continue
		}
		if a > s.next {
			to := s.nextKnown(a)
			if s.acked > s.next { // the receiver has what is missing here
				s.skip(min(s.acked, to), Lost, ref)
				s.drain(ref)
				continue
			}
			if q := s.queue; q != nil && !s.ackSeen && ref.Time-q.since > int64(s.pool.options.Wait) {
				s.skip(to, Late, ref)
				s.drain(ref)
				continue
			}
		}
		e := b
		i := 0
		if s.queue != nil {
			i = s.queue.search(a)
			for i < s.queue.len() && a < b && s.queue.at(i).start <= a {
				to := min(b, s.queue.at(i).end)
				if s.queue.at(i).differs(a, part(a, to)) {
					s.stats.Differing++
					s.consumer.Differs(a, int(to-a), ref)
				}
				seen(a, to-a)
				a = to
				i++
			}
			if a == b {
				break
			}
			if i < s.queue.len() {
				e = min(e, s.queue.at(i).start)
			}
		}
		if a == s.next {
			s.remember(a, part(a, e), int(e-a))
			s.deliver(part(a, e), int(e-a), ref, ref)
			s.drain(ref)
			a = e
			continue
		}
		if !s.keep(i, a, e, part(a, e), ref) {
			// Give up the first gap. Either it ends at a, or that makes room.
			s.skip(s.nextKnown(a), Overrun, ref)
			s.drain(ref)
			continue
		}
		a = e
	}
	if again.n > 0 {
		s.again(again.at, again.n, ref)
	}
	s.checkEnd(ref)
}

// gap is a part of the stream: from is its first byte, to the one after it.
type gap struct{ from, to uint64 }

// givenUp is how many of the bytes [a, b) were given up recently.
func (s *Stream) givenUp(a, b uint64) (n uint64) {
	for i := range s.gaps {
		if from, to := max(a, s.gaps[i].from), min(b, s.gaps[i].to); from < to {
			n += to - from
		}
	}
	return n
}

// nextKnown is where the gap at the next byte ends, given a segment at a.
func (s *Stream) nextKnown(a uint64) uint64 {
	if s.queue != nil {
		a = min(a, s.queue.at(0).start)
	}
	return a
}

// keep buffers a piece as the i-th that waits, if the bounds allow it.
func (s *Stream) keep(i int, a, e uint64, p []byte, ref rdma.Ref) bool {
	o := &s.pool.options
	size := s.pool.size(len(p))
	have, count := 0, 0
	if s.queue != nil {
		have, count = s.queue.bytes, s.queue.len()
	}
	if have+size > o.Buffer || count >= o.Segments || s.pool.used+size > o.Total {
		return false
	}
	if s.queue == nil {
		s.queue = s.pool.getQueue()
		s.queue.since = ref.Time
	}
	data := s.pool.get(len(p))
	copy(data, p)
	s.queue.insert(i, waiting{start: a, end: e, data: data, first: ref})
	s.stats.OutOfOrder++
	return true
}

// deliver hands out n bytes, of which p was captured.
func (s *Stream) deliver(p []byte, n int, first, ready rdma.Ref) {
	at := s.next
	s.next += uint64(n)
	if len(p) > 0 {
		s.consumer.Data(at, p[:len(p):len(p)], first, ready)
	}
	if missing := n - len(p); missing > 0 {
		s.stats.Cut += uint64(missing)
		s.consumer.Skip(at+uint64(len(p)), missing, Cut, first, ready)
	}
}

// skip gives up what is missing before to.
func (s *Stream) skip(to uint64, why Reason, ref rdma.Ref) {
	if to <= s.next {
		return
	}
	at, n := s.next, to-s.next
	s.next = to
	s.stats.Lost += n
	if last := &s.gaps[(s.gapAt+uint8(len(s.gaps))-1)%uint8(len(s.gaps))]; last.to == at && at > 0 {
		last.to = to
	} else {
		s.gaps[s.gapAt] = gap{at, to}
		s.gapAt = (s.gapAt + 1) % uint8(len(s.gaps))
	}
	s.consumer.Skip(at, int(n), why, rdma.Ref{}, ref)
}

func (s *Stream) again(at, n uint64, ref rdma.Ref) {
	s.stats.Again += n
	s.consumer.Again(at, int(n), ref)
}

// drain delivers what no longer waits.
func (s *Stream) drain(ref rdma.Ref) {
	q := s.queue
	if q == nil || q.at(0).start > s.next {
		return
	}
	for q.len() > 0 && q.at(0).start == s.next {
		w := q.at(0)
		s.remember(w.start, w.data, int(w.end-w.start))
		s.deliver(w.data, int(w.end-w.start), w.first, ref)
		s.pool.put(q.pop())
	}
	q.since = ref.Time
	if q.len() == 0 {
		s.pool.putQueue(q)
		s.queue = nil
	}
}

// settle gives up gaps that the receiver has acknowledged, if something waits after them. Otherwise there is
// no hurry: captures with several queues or taps have acknowledgments that precede what they acknowledge.
func (s *Stream) settle(ref rdma.Ref) {
	for s.next < s.acked {
		to := s.acked
		switch {
		case s.queue != nil:
			to = min(to, s.queue.at(0).start)
		case s.finSeen && s.state == running:
			to = min(to, s.fin)
		default:
			return
		}
		if to <= s.next {
			return
		}
		s.skip(to, Lost, ref)
		s.drain(ref)
		s.checkEnd(ref)
	}
}

func (s *Stream) checkEnd(ref rdma.Ref) {
	if s.finSeen && s.next >= s.fin && s.state == running {
		s.state = ended
		s.consumer.End(s.next, ByFIN, ref)
	}
}
