package fabric

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Status is how an operation ended.
type Status uint8

// Statuses.
const (
	Completed   Status = iota // acknowledged; of a Read, all responses have come
	Unanswered                // the connection, or the capture, ended before that
	Incomplete                // a Send whose last packet, or a Read or atomic operation whose response, was not captured
	GivenUp                   // too many were in flight at once to follow it
	Interrupted               // sequence numbers contradicted what was known of the connection
)

var statusNames = [...]string{"completed", "unanswered", "incomplete", "given up", "interrupted"}

func (s Status) String() string { return statusNames[s] }

// Operation is a Send, RDMA Write, RDMA Read or atomic operation at its end. It is
// valid during the call of Options.Operation, its Connection beyond.
type Operation struct {
	Connection *rdma.Connection
	Service    Service
	Kind       rdma.WorkKind
	From       rdma.Side // who asked for it
	Status     Status
	Seq        uint64 // 0, 1, 2, … of those that From started on the connection
	PSN        uint32 // of its first packet; RoCE and InfiniBand
	Handle     uint32 // Write, Read: steering tag
	Offset     uint64 // Write, Read: address in the memory of the other side
	Length     uint32 // bytes: as sent of a Send, else as announced
	Bytes      uint64 // payload seen, each byte once
	Packets    uint32 // with payload or request, seen for the first time
	Again      uint32 // that were seen once more
	InFlight   int    // operations of From in flight as it began, itself included
	First      rdma.Ref
	Last       rdma.Ref // its last packet; not its acknowledgement
	End        rdma.Ref // what completed it: acknowledgement, or last response; not seen if it is not known which
	// Lost divides the latency, if there is one, by cause: see Stall. The parts sum to it.
	Lost Share

	resent int64 // time of its latest packet that was seen once more
	done   bool
	live   bool
}

// Latency is the time from the first packet to the acknowledgement of all, or to
// the last response to a Read, as seen where the capture was made. Operations that were not
// completed have none, nor have those of which it is not known when: of unreliable connections, and those acknowledged before
// it was known to whom the acknowledgements belong.
func (o *Operation) Latency() (d time.Duration, ok bool) {
	if o.Status != Completed || !o.End.Seen() || o.End.Time < o.First.Time {
		return 0, false
	}
	return time.Duration(o.End.Time - o.First.Time), true
}

const (
	ringStart = 2
	maxOpen   = 1024    // operations that are followed of one direction
	maxRings  = 1 << 16 // the same, of all directions together
)

// ring has the operations in flight of a direction, by number.
type ring struct {
	slots       []Operation
	first, next uint64 // those between are in slots, in flight or not
	live        int
}

// at is the operation with that number, nil if it has ended.
func (g *ring) at(seq uint64) *Operation {
	if seq < g.first || seq >= g.next || len(g.slots) == 0 {
		return nil
	}
	if o := &g.slots[seq&uint64(len(g.slots)-1)]; o.live {
		return o
	}
	return nil
}

// settle moves the beginning to the oldest operation in flight.
func (g *ring) settle() {
	for g.first < g.next && !g.slots[g.first&uint64(len(g.slots)-1)].live {
		g.first++
	}
}

func (g *ring) grow(n int) {
	slots := make([]Operation, n)
	for seq := g.first; seq < g.next; seq++ {
		slots[seq&uint64(n-1)] = g.slots[seq&uint64(len(g.slots)-1)]
	}
	g.slots = slots
}

// WorkStarted implements rdma.Watcher.
func (r *Recorder) WorkStarted(c *rdma.Connection, w *rdma.Work, ref rdma.Ref) {
	k := r.conn(c)
	if k == nil {
		return
	}
	d := &k.dirs[w.From]
	if d.passed.by != 0 {
		r.unseen(k, d, w, ref)
	}
	o := r.start(k, w.From, w.Seq)
	if r.opt.wantsOperations() {
		*o = Operation{PSN: w.PSN, Handle: w.Handle, Offset: w.Offset}
	}
	// What is not set here is read only if somebody is told of operations.
	o.Connection, o.Kind, o.From, o.Seq, o.Length = c, w.Kind, w.From, w.Seq, w.Length
	o.Bytes, o.Packets, o.Again, o.InFlight = 0, 0, 0, d.open.live
	o.First, o.Last, o.resent, o.done, o.live = ref, ref, 0, false, true
	if o.responded() {
		o.Packets = 1 // the request; all others come with WorkData
		if d.reads++; d.reads == k.depth(w.From) {
			d.fullAt = ref
		}
	}
	if w.Kind == rdma.WorkAtomic {
		o.Bytes = uint64(w.Length)
	}
	k.started[w.From][w.Kind]++
}

// start makes room for an operation that begins.
func (r *Recorder) start(k *conn, from rdma.Side, seq uint64) *Operation {
	g := &k.dirs[from].open
	if seq != g.next { // the numbers of a merged side continue
		r.giveUp(k, from, Interrupted)
		g.first, g.next = seq, seq
	}
	if n := len(g.slots); n == 0 || g.next-g.first == uint64(n) {
		r.makeRoom(k, g)
	}
	o := &g.slots[g.next&uint64(len(g.slots)-1)]
	g.next++
	g.live++
	return o
}

// makeRoom makes room in a ring that is full: it grows, or the oldest operation is given up.
func (r *Recorder) makeRoom(k *conn, g *ring) {
	n := len(g.slots)
	size := max(2*n, ringStart)
	if n == 0 || size <= maxOpen && r.slots+size-n <= maxRings/16*r.scale {
		r.slots += size - n
		g.grow(size)
		return
	}
	r.end(k, &g.slots[g.first&uint64(n-1)], GivenUp, rdma.Ref{})
	g.settle()
}

// WorkData implements rdma.Watcher.
func (r *Recorder) WorkData(c *rdma.Connection, from rdma.Side, seq uint64, bytes uint32, again bool, ref rdma.Ref) {
	k := r.conn(c)
	if k == nil {
		return
	}
	d := &k.dirs[from&1]
	if again {
		d.again = bytes
	}
	o := d.open.at(seq)
	if o == nil {
		return
	}
	if again {
		o.Again++
		o.resent = ref.Time
		return
	}
	if o.Bytes > 0 && c.Fabric != rdma.IWARP {
		sender := from & 1
		if o.Kind == rdma.WorkRead {
			sender ^= 1
		}
		r.paced(d, &k.marks[sender], o.Last, ref)
	}
	o.Packets++
	o.Bytes += uint64(bytes)
	o.Last = ref
}

// WorkDone implements rdma.Watcher.
func (r *Recorder) WorkDone(c *rdma.Connection, from rdma.Side, seq uint64, length uint32, data []byte, ref rdma.Ref) {
	k := r.conn(c)
	if k == nil {
		return
	}
	o := k.dirs[from].open.at(seq)
	if o == nil {
		return
	}
	o.done, o.Length = true, length
	switch {
	case o.Kind == rdma.WorkRead:
		if !ref.Seen() { // its responses came before it was known whose they are
			o.Bytes = uint64(length)
		}
		r.end(k, o, Completed, ref)
		k.dirs[from].open.settle()
	case !k.guessed && len(data) > 0:
		k.guess(data, length, from)
	}
}

// WorkAcked implements rdma.Watcher.
func (r *Recorder) WorkAcked(c *rdma.Connection, from rdma.Side, seq uint64, ref rdma.Ref) {
	k := r.conn(c)
	if k == nil {
		return
	}
	o := k.dirs[from].open.at(seq)
	if o == nil || o.Kind == rdma.WorkRead { // a Read ends with its last response
		return
	}
	if o.Kind == rdma.WorkSend && !r.opt.wantsOperations() {
		g := &k.dirs[from].open
		o.live = false
		g.live--
		g.settle()
		return
	}
	status := Completed
	if o.Kind == rdma.WorkSend && (!o.done || o.Bytes < uint64(o.Length)) {
		status = Incomplete
	}
	r.end(k, o, status, ref)
	k.dirs[from].open.settle()
}

// end takes an operation out of its ring.
func (r *Recorder) end(k *conn, o *Operation, status Status, ref rdma.Ref) {
	if r.opt.wantsOperations() {
		o.Status, o.End = status, ref
		o.Connection, o.Service = k.c, k.service(r)
		if o.Kind == rdma.WorkWrite && o.Length == 0 { // of iWARP
			o.Length = uint32(min(o.Bytes, 1<<32-1))
		}
	}
	if !r.opt.Lean {
		r.blame(k, o)
		r.count(k, o)
	}
	if r.opt.Operation != nil {
		r.opt.Operation(o)
	}
	o.live = false
	d := &k.dirs[o.From]
	d.open.live--
	if o.Seq > d.open.first && ref.Seen() && k.c.Fabric != rdma.IWARP {
		d.pass(o, ref)
	}
	if o.responded() {
		if d.fullAt.Seen() && ref.Seen() {
			d.stalls.add(r, Stall{From: d.fullAt.Time, To: ref.Time, Lost: ref.Time - d.fullAt.Time, Cause: rdma.CauseReadSlot})
		}
		d.reads, d.fullAt = d.reads-1, rdma.Ref{}
	}
}

// blame divides the latency of an operation. Packets behind its last one do not delay it; the last is one that was
// sent again, if any was, since that may have been lost, too.
func (r *Recorder) blame(k *conn, o *Operation) {
	o.Lost = Share{}
	d, ok := o.Latency()
	if !ok {
		return
	}
	from, to := o.First.Time, o.End.Time
	last := max(o.Last.Time, o.resent)
	l := &k.dirs[o.From]
	r.list = r.list[:0]
	for i := len(l.stalls.list) - 1; i >= 0; i-- {
		s := &l.stalls.list[i]
		if s.To2 > from && s.From < to && s.From <= last && s.Cause != rdma.CauseReadSlot && !s.Between {
			r.list = append(r.list, s.At(to))
		}
	}
	forgotten := l.stalls.forgotten
	if o.Kind == rdma.WorkRead && k.c.Fabric == rdma.IWARP { // the responses are a part of the other stream
		answers := &k.dirs[o.From.Other()].stalls
		forgotten = max(forgotten, answers.forgotten)
		for i := len(answers.list) - 1; i >= 0; i-- {
			if s := &answers.list[i]; s.To2 > from && s.From < to && s.Cause != rdma.CauseReadSlot && !s.Between {
				r.list = append(r.list, s.At(to))
			}
		}
	}
	if w := &l.answer; o.Kind == rdma.WorkRead && w.since.Seen() && w.since.Time < to {
		// The response that ends the operation ends the stall, too.
		r.list = append(r.list, Stall{From: w.since.Time, To: to, Lost: to - w.since.Time, Cause: w.cause})
	}
	if len(r.list) == 0 && forgotten <= from {
		o.Lost[rdma.CauseRest] = int64(d)
		return
	}
	o.Lost, r.scratch = Divide(from, to, r.list, forgotten, r.scratch)
}

// giveUp ends all operations that a side has in flight.
func (r *Recorder) giveUp(k *conn, side rdma.Side, status Status) {
	g := &k.dirs[side].open
	for ; g.first < g.next; g.first++ {
		if o := g.at(g.first); o != nil {
			s := status
			if s == Unanswered && o.Kind == rdma.WorkSend && !o.done {
				s = Incomplete
			}
			r.end(k, o, s, rdma.Ref{})
		}
	}
}
