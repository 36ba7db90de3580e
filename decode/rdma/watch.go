package rdma

// WorkKind tells the operations of a queue pair apart.
type WorkKind uint8

// Kinds of work.
const (
	WorkSend WorkKind = iota + 1
	WorkWrite
	WorkRead
	WorkAtomic
)

var workNames = [...]string{"", "send", "write", "read", "atomic"}

func (k WorkKind) String() string {
	if int(k) < len(workNames) {
		return workNames[k]
	}
	return ""
}

// Work is one operation as the fabric carries it, whatever the layer above.
type Work struct {
	// Seq counts the operations that From started on the connection, in the
	// order in which they were first seen: 0, 1, 2, …
	Seq    uint64
	Kind   WorkKind
	From   Side
	PSN    uint32 // of its first packet; 0 over iWARP
	Handle uint32 // Write, Read: steering tag of the memory at the other side
	Offset uint64 // address in that memory
	Length uint32 // bytes, as announced; 0 for a Send, and for an iWARP Write, whose end tells
}

// Class says what a packet is to the health of a connection.
type Class uint8

// Classes of packets. ClassSegment is a TCP segment of an iWARP connection, all
// others are of RoCE and InfiniBand. ClassReady is an RTU that answers a REP which
// was sent again: until then the passive side may not have got one.
const (
	ClassOther Class = iota
	ClassRequest
	ClassReadResponse
	ClassAck // an atomic's included
	ClassNAK
	ClassRNR
	ClassCNP
	ClassSegment
	ClassReady
)

// Novelty says whether a packet was seen before.
type Novelty uint8

// Novelties.
const (
	NoveltyUnknown Novelty = iota
	NoveltyNew             // the next in order, or beyond a gap
	NoveltyLate            // it was missing: it was lost and sent again, or overtaken
	NoveltyAgain           // it has been seen
)

// Sighting is a packet that belongs to a connection, with what its tracker
// found out about its place in the sequence.
type Sighting struct {
	Ref     Ref
	From    Side
	Class   Class
	Novelty Novelty
	Marked  bool // "congestion experienced" in the IP header
	Read    bool // ClassRequest: an RDMA Read Request
	// Restarted says that the packet sequence numbers of From contradicted what
	// was known. All that was under way there is over.
	Restarted bool
	Syndrome  uint8  // ClassAck, ClassNAK, ClassRNR: of the AETH
	Bytes     uint32 // as in Counters.Bytes
	PSN       uint32 // as in the BTH; of a response, of the request that it answers
	Count     uint32 // PSNs that a request takes: more than 1 only for a Read; 0 if not known
	Gap       uint32 // PSNs right before this one that have not been seen
	// Inside says that the packet does not begin a message or a response, or that Start is within a message of RDMAP: the sender had it to send
	// together with what precedes it.
	Inside bool

	// ClassSegment: offsets in the stream of From (Start, End) and in that of
	// the other side (Acked). Placed is false if the offsets are not known.
	Placed, HasAck    bool
	ZeroWindow        bool // the receiver has no room
	Start, End, Acked uint64
	// Window is the receive window that goes with Acked, as sent, and WindowScale its shift count
	// (RFC 7323, section 2.2), −1 if the setup of TCP was not captured.
	Window      uint16
	WindowScale int8
}

// Watcher sees the packets and operations of all RDMA connections, with or
// without RPC: see Hooks. It is told in the order of the capture. Nothing
// that it is given may be kept beyond the call, except the *Connection.
type Watcher interface {
	// Saw reports a packet, after what it did to operations.
	Saw(c *Connection, s *Sighting)
	// WorkStarted reports the first packet of an operation that was seen.
	WorkStarted(c *Connection, w *Work, ref Ref)
	// WorkData reports a packet of an operation: of a Send or Write, or of the
	// response to a Read. again says that it, or a Read Request, came once more.
	WorkData(c *Connection, from Side, seq uint64, bytes uint32, again bool, ref Ref)
	// WorkDone reports that a Send was put together, with its first bytes, that the last response to a Read came, or that an iWARP Write
	// ended: only its end says how long it is. length is what was sent; if the end of a Send is missing, at least one byte more than
	// was seen.
	WorkDone(c *Connection, from Side, seq uint64, length uint32, data []byte, ref Ref)
	// WorkAcked reports the packet that acknowledges all of an operation. ref is not seen if it is not known which one
	// did, or if none is needed.
	WorkAcked(c *Connection, from Side, seq uint64, ref Ref)
	// Paused reports a frame of Ethernet flow control.
	Paused(p *Pause, ref Ref)
	// Merged and Closed are the same as in Handler.
	Merged(into *Connection, side Side, from *Connection, was Side)
	Closed(c *Connection, ref Ref)
}

// RunWatcher is told of packets of RoCE that are the next ones expected with fewer calls than a Watcher: see Hooks.Runs.
type RunWatcher interface {
	// NextSend reports a Send of one packet, the next of its sender, with nothing missing before it: it stands for
	// WorkStarted, WorkData, WorkDone and Saw. It is called before a transaction learns of the Send.
	//
	// If it returns a Run, the tracker may note Sends like this one, and acknowledgements of this sender's requests, in it, in place of
	// NextSend, NextSendAcked and NextAck, until the watcher is told of anything else.
	NextSend(c *Connection, s *Send, seq uint64, psn uint32) *Run
	// NextSendAcked reports the acknowledgement of a Send of one packet, with nothing missing and no other operation under way: it
	// stands for WorkAcked and Saw. It is called after a transaction has learned of it.
	NextSendAcked(c *Connection, from Side, seq uint64, psn uint32, ref Ref)
	// NextAck reports any other acknowledgement of all up to psn that from sent, with nothing missing: it stands for Saw, after
	// WorkAcked.
	NextAck(c *Connection, from Side, psn uint32, ref Ref)
}

// Pause is a frame of Ethernet flow control: PAUSE, or of one for each priority (PFC).
type Pause struct {
	PerPriority bool      // false for PAUSE, which does not tell priorities apart
	Priorities  uint8     // that it speaks of, by bit
	Quanta      [8]uint16 // for how long it stops each, in units of 512 bit times; 0 resumes
	From        [6]byte   // MAC address of its sender; 0 if that is not known
}

// pauseQuantum is how many nanoseconds a quantum of 512 bit times lasts at most: at 1 Gb/s.
const pauseQuantum = 512

// Stopped is how long frames of flow control stop something: up to the one that resumes it, or until the newest stop ends by itself.
type Stopped struct {
	Since, Last int64 // first and newest stop
	Until       int64 // when the newest has ended by itself, at the latest
	Frames      int64 // stops; 0: it is not stopped

	held, sure int64 // up to Last, and from then on: for sure, see sureQuantum
}

// sureQuantum is how long a quantum lasts at least, in picoseconds: at 100 Gbit/s, since a capture does not tell the speed of a link.
const sureQuantum = 5120

// Take takes a frame that stops for some quanta, or resumes with 0. It returns what has ended; resumed says that the frame has ended it, and else
// it has ended by itself (IEEE 802.3, annex 31B.3).
func (s *Stopped) Take(quanta uint16, at int64) (ended Stopped, resumed bool) {
	if s.Frames > 0 && (quanta == 0 || at > s.Until) {
		ended, resumed = *s, at <= s.Until
		*s = Stopped{}
	}
	if quanta == 0 {
		return ended, resumed
	}
	if s.Frames == 0 {
		s.Since = at
	}
	s.held += min(s.sure, max(at-s.Last, 0))
	s.sure = int64(quanta) * sureQuantum / 1000
	s.Last, s.Until, s.Frames = at, at+int64(quanta)*pauseQuantum, s.Frames+1
	return ended, resumed
}

// Least is how long it has lasted at least, if it was repeated: each stop lasts until the next one, as far as its quanta do, and so does the last.
func (s *Stopped) Least() int64 {
	if s.Frames < 2 {
		return 0
	}
	return s.held + min(s.sure, max(s.Last-s.Since, 0)/(s.Frames-1))
}

// Watchers makes one Watcher of several. Each has Connection.Watched for itself.
func Watchers(list ...Watcher) Watcher {
	kept := make(watchers, 0, len(list))
	for _, w := range list {
		if w != nil {
			kept = append(kept, w)
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case 1:
		return kept[0]
	}
	return kept
}

type watchers []Watcher

// watched is Connection.Watched of several.
type watched []Watched

// WatchedConnection implements Watched.
func (watched) WatchedConnection() {}

// each calls f with Connection.Watched as the i-th left it.
func (l watchers) each(c *Connection, f func(i int, w Watcher)) {
	slots, _ := c.Watched.(watched)
	if slots == nil {
		slots = make(watched, len(l))
	}
	for i, w := range l {
		c.Watched = slots[i]
		f(i, w)
		slots[i] = c.Watched
	}
	c.Watched = slots
}

func (l watchers) Saw(c *Connection, s *Sighting) {
	l.each(c, func(_ int, w Watcher) { w.Saw(c, s) })
}

func (l watchers) WorkStarted(c *Connection, x *Work, ref Ref) {
	l.each(c, func(_ int, w Watcher) { w.WorkStarted(c, x, ref) })
}

func (l watchers) WorkData(c *Connection, from Side, seq uint64, bytes uint32, again bool, ref Ref) {
	l.each(c, func(_ int, w Watcher) { w.WorkData(c, from, seq, bytes, again, ref) })
}

func (l watchers) WorkDone(c *Connection, from Side, seq uint64, length uint32, data []byte, ref Ref) {
	l.each(c, func(_ int, w Watcher) { w.WorkDone(c, from, seq, length, data, ref) })
}

func (l watchers) WorkAcked(c *Connection, from Side, seq uint64, ref Ref) {
	l.each(c, func(_ int, w Watcher) { w.WorkAcked(c, from, seq, ref) })
}

func (l watchers) Merged(into *Connection, side Side, from *Connection, was Side) {
	theirs, _ := from.Watched.(watched)
	if theirs == nil {
		theirs = make(watched, len(l))
	}
	l.each(into, func(i int, w Watcher) {
		from.Watched = theirs[i]
		w.Merged(into, side, from, was)
	})
	from.Watched = nil
}

func (l watchers) Closed(c *Connection, ref Ref) {
	l.each(c, func(_ int, w Watcher) { w.Closed(c, ref) })
}

// EachWatched calls f with what each Watcher has put into Connection.Watched.
func (c *Connection) EachWatched(f func(any)) {
	slots, several := c.Watched.(watched)
	if !several {
		f(c.Watched)
		return
	}
	for _, x := range slots {
		f(x)
	}
}

func (l watchers) Paused(p *Pause, ref Ref) {
	for _, w := range l {
		w.Paused(p, ref)
	}
}
