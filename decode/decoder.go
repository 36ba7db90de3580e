// Package decode turns packets into transactions.
//
//	capture.Reader ─► link, roce (headers, ICRC) ─► trackers ─► rdma operations ─► transaction.Tracker ─► Transaction
//
// A Decoder does all of it; its parts can be used on their own.
package decode

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/traced"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Options configures a Decoder. The zero value is a good choice.
type Options struct {
	Transactions transaction.Options
	RoCE         roce.Limits
	TCP          TCPLimits
	// Memory is how many bytes the Decoder may hold: transactions, connections, and data to be reassembled
	// (memory.DefaultLimit). Beyond it, the oldest and least used are evicted, and marked as incomplete or
	// evicted; Stats counts them. The Decoder sets the memory accounts in the options of its parts.
	Memory int
	// SkipICRC leaves the invariant CRCs of RoCE and InfiniBand unchecked.
	SkipICRC bool
	// Clock selects whose timestamps are the times of packets. Packets are always processed in capture order.
	Clock Clock
	// Live says that packets come while they are captured: what is known is reported at once, also where a later packet may
	// contradict it. Over iWARP, a Terminate message can refuse what TCP has acknowledged.
	Live bool
	// Concurrent lets Run call emit in parallel with Packet and Closed, so that decoding continues while a transaction
	// is examined. It is called on whichever goroutine of Run has time, for one transaction after the other. The
	// Connection of a transaction is then a copy, see transaction.Options. With one processor, or less than 2 MiB of Memory, it is called in turn.
	Concurrent bool
	// Trackers has Run divide connections by their hosts among this many trackers that work side by side;
	// 0 means one tracker for all. Transactions are the same, and come in the same order, for any number of
	// them above 0. A single tracker is used if something has to be seen in the order of the capture, or is
	// limited in number by other options: see Decoder.Trackers.
	Trackers int
	// Group, if set, is called once for each group of hosts that share a tracker, if Run uses Trackers. It returns a
	// function that is shown the transactions of the group before emit, and returns true for those that emit is
	// not to get. Different groups are consumed in parallel, each in its own order, with connections and serials
	// numbered for itself. Which hosts make a group does not depend on the number of trackers.
	Group func(group int) func(*transaction.Transaction) (taken bool)
	// Observers are told of packets, messages, operations and connections, in this order. See Observe.
	Observers []Observer
}

// Observe adds an Observer, behind those that there are.
func (o *Options) Observe(x Observer) { o.Observers = append(slices.Clip(o.Observers), x) }

// PacketView is one decoded packet. It is valid during the call.
type PacketView struct {
	Packet *capture.Packet
	Frame  *link.Frame
	Fabric rdma.Fabric
	// RoCE holds the InfiniBand packets of the frame: usually one, several in a segmentation-offload
	// super-packet, none on other fabrics.
	RoCE []roce.Packet
	// Connection is the packet's connection, if known.
	Connection *rdma.Connection
	// Tenant distinguishes equal addresses, as rdma.Connection.Tenant does.
	Tenant uint64
}

// MACs are the Ethernet addresses of the packet, as link.MACs gives them.
func (v *PacketView) MACs() (to, from []byte) {
	return link.MACs(v.Packet.Link, v.Packet.Data, v.Packet.Length, v.Frame)
}

// Stats counts what passed through a Decoder.
type Stats struct {
	Packets      uint64
	Bytes        uint64 // on the wire
	Transactions uint64
	Connections  int // that have ended; those that turned out to be part of others do not count
	BadICRC      uint64
	GoodICRC     uint64
	Misfits      roce.Misfits // of those with a wrong ICRC
	NotChecked   uint64       // RoCE and InfiniBand packets whose ICRC could not be checked
	Undecodable  uint64       // packets of a known kind with damaged headers
	CutShort     uint64       // those among Undecodable that were cut within their headers, by the capture or before
	CutBefore    uint64       // packets shorter than their headers say, though the capture has all of them: a mirror has cut them
	Other        uint64       // packets of unknown kinds
	Fragments    uint64       // IP fragments
	// Joined counts the datagrams that held several RoCE packets, as segmentation offload shows them, and
	// JoinedPackets these packets. NotSplit counts the datagrams that cannot be one packet and were not
	// split, or not completely: cut, damaged, or without ICRCs. They are in Undecodable, too.
	Joined, JoinedPackets, NotSplit uint64
	// Connections and incomplete IP datagrams that were evicted because there were too many, or because they
	// held too much memory. Orphans counts the transactions.
	EvictedConnections, EvictedDatagrams uint64
	// IncompleteDatagrams counts IP datagrams of which the capture lacks fragments, once they are given up. OddFragments counts the fragments
	// that cannot be a part of a datagram, contradict others of theirs, or repeat some with other bytes; the first ones count.
	IncompleteDatagrams, OddFragments uint64
	// BadCRC counts FPDUs of iWARP that were decoded although their CRC is wrong.
	BadCRC uint64
	// Misframed counts FPDUs and MPA frames of iWARP that were given up because their length or header contradicts those around them, and the
	// bytes that were not decoded for that. Differing counts TCP segments, and packets of RoCE
	// with parts of Sends, that were seen again with other bytes; the first ones count.
	Misframed, Differing rdma.Given
	// Displaced counts the directions of iWARP connections, and of RPC over TCP, that the capture holds so much out of order that bytes
	// came after they had been given up. First is the first packet of such a connection.
	Displaced rdma.Given
	// Mismarked counts what follows a record of RPC over TCP and is not a record, since its mark or its header is invalid, and the bytes
	// that were passed over for that, once the connection is closed; and records whose mark claims so much that it hides calls which the peer
	// has answered.
	Mismarked rdma.Given
	// Sealed counts the directions of connections of RPC that go on with TLS (RFC 9289), and the bytes of that, once the connection is
	// closed.
	Sealed rdma.Given
	// TLSRefused counts those of Sealed with an alert in plain text. Offset is the description of the first (RFC 8446, section 6).
	TLSRefused rdma.Given
	// Rejected counts the connections whose setup the other side has rejected. First is the first packet of such a connection.
	Rejected rdma.Given
	// Refused counts the attempts to connect by TCP to a port of NFS or of rpcbind that were refused. First is the first SYN.
	Refused rdma.Given
	// Unanswered counts those of which the capture has only SYNs, and Asked the connections over RDMA that one side asked for without an
	// answer, once they are closed.
	Unanswered, Asked Asked
	// OneWay counts the connections of which the capture has messages of one side and nothing that the other one sent, and the bytes of the
	// former, once the connection is closed. First is the first packet of such a connection.
	OneWay rdma.Given
	// Sampled is what datagrams of sFlow hold.
	Sampled Sampled
	// Sequences is what the sequence numbers of mirrors and tunnels say.
	Sequences Sequences
	// Backwards are the places where the time goes back from one packet to the next.
	Backwards   Backwards
	First, Last rdma.Ref
}

// Backwards counts packets that are stamped earlier than the packet before them, by more than MaxBack: the clock of the
// capture was set back, or its packets are not in the order of time. What lasted across such a place has a length that nobody knows.
type Backwards struct {
	Count uint64
	Most  int64  // nanoseconds: the farthest step
	First uint64 // number of the first such packet
}

// MaxBack is by how much the time may go back between two packets, in nanoseconds. Adapters with several queues, and captures of
// several interfaces, do not keep the order exactly.
const MaxBack = 10e6

// note counts p, which follows a packet that is stamped last.
func (b *Backwards) note(p *capture.Packet, last int64) {
	if b.Count == 0 {
		b.First = p.Number
	}
	b.Count++
	b.Most = max(b.Most, last-p.Time)
}

// Since takes off what had been counted before. The first and the farthest stay those of all.
func (b Backwards) Since(o Backwards) Backwards {
	if b.Count == o.Count {
		return Backwards{}
	}
	b.Count -= o.Count
	return b
}

// Decoder receives packets in capture order and reports transactions.
type Decoder struct {
	opt     Options
	numbers rdma.Numbers
	tx      *transaction.Tracker
	roce    *roce.Tracker
	tcp     tcpDemux
	udp     udpDemux
	traced  *traced.Tracker      // of kernel events; nil before the first
	frags   [2]*link.Reassembler // outside and inside of tunnels
	tunnels tunnels
	senders sequences
	clock   switchClock
	inIB    link.Frame // of IP over InfiniBand: keeps its room
	sample  link.Frame // of sFlow: the same
	at      place
	memory  accounts
	stats   Stats
	tally   account
	stop    atomic.Bool

	observer Observer // all of Options.Observers
	emit     func(*transaction.Transaction)
	group    *group     // of which it is the tracker; nil: it is the whole
	groups   *groups    // with Options.Trackers, from Run on
	handover *handover  // while Run is under way, with Options.Concurrent
	single   dissection // of Batch
	joined   dissection // of reassembled frames
	view     PacketView
}

// New makes a Decoder that calls emit for each transaction. emit must not keep its argument.
func New(opt Options, emit func(*transaction.Transaction)) *Decoder {
	d := &Decoder{opt: opt, emit: emit, observer: join(opt.Observers)}
	d.account(&opt)
	opt.Transactions.Detach = opt.Transactions.Detach || opt.Concurrent
	opt.Transactions.Message, opt.Transactions.Unmatched = d.observer.Message, d.observer.Unmatched
	d.tx = transaction.NewTracker(opt.Transactions, d.emitted)
	hooks := d.tx.Hooks()
	hooks.Watcher, hooks.Runs, hooks.Segment = d.observer.Watcher, d.observer.Runs, d.observer.Segment
	var h rdma.Handler = &handler{Tracker: d.tx, d: d}
	if d.observer.handles() {
		h = &observed{handler{Tracker: d.tx, d: d}}
	}
	d.roce = roce.NewTracker(h, hooks, &d.numbers, opt.RoCE)
	d.tcp.init(h, hooks, &d.numbers, opt.TCP, opt.Live, d.memory.connections)
	d.tcp.attempt = d.observer.Attempt
	d.udp.init(h, &d.numbers, d.memory.connections)
	for i := range d.frags {
		d.frags[i] = link.NewReassembler(link.ReassemblerOptions{Bytes: min(8<<20, d.memory.budget.Limit()/8)})
	}
	d.single.set(&opt, &d.observer)
	d.joined.set(&opt, &d.observer)
	return d
}

// handler adds to the transaction tracker what the Decoder itself needs.
type handler struct {
	*transaction.Tracker
	d *Decoder
}

// Send implements rdma.Handler.
func (h *handler) Send(c *rdma.Connection, s *rdma.Send) rdma.Tag {
	if c.Fabric == rdma.InfiniBand && h.d.at.packet != nil && link.StartsIPoIB(s.Data, s.Length) && h.d.message(s) {
		if f := h.d.observer.Unmatched; f != nil {
			f(c, s)
		}
		return rdma.Tag{}
	}
	return h.Tracker.Send(c, s)
}

// Merged implements rdma.Handler.
func (h *handler) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	h.Tracker.Merged(into, side, from, was)
	if w := h.d.observer.Watcher; w != nil {
		w.Merged(into, side, from, was)
	}
}

// Closed implements rdma.Handler.
func (h *handler) Closed(c *rdma.Connection, ref rdma.Ref) {
	if g := h.d.group; g != nil {
		g.closing(c)
	}
	h.Tracker.Closed(c, ref)
	if w := h.d.observer.Watcher; w != nil {
		w.Closed(c, ref)
	}
	h.d.tally.closed(c)
	if c.MergedInto == nil {
		h.d.stats.Connections++
	}
	if c.State == rdma.Rejected {
		h.d.stats.Rejected.Add(rdma.Given{Count: 1, First: c.First.Number})
	}
	h.d.stats.Asked.Add(AskedBy(c))
	if side, ok := c.OneWay(); ok {
		h.d.stats.OneWay.Add(rdma.Given{Count: 1, Bytes: c.Sent[side].Bytes, First: c.First.Number})
	}
	if closed := h.d.observer.Closed; closed != nil {
		closed(c)
	}
}

// emitted takes a transaction from the tracker.
func (d *Decoder) emitted(tx *transaction.Transaction) {
	d.stats.Transactions++
	switch {
	case !d.opt.Concurrent:
		d.emit(tx)
	case d.handover == nil: // not within Run
		d.emit(tx)
		d.tx.Recycle(tx)
	default:
		d.handover.add(tx)
	}
}

// Stop makes Run return soon: after the current packet, or with Options.Concurrent a little later.
func (d *Decoder) Stop() { d.stop.Store(true) }

// Stats returns the counts so far.
func (d *Decoder) Stats() Stats {
	s := d.stats
	s.Misframed, s.Differing = d.tcp.iwarp.Misframed, d.tcp.differing
	s.Differing.Add(d.roce.Differing())
	s.Displaced, s.BadCRC = d.tcp.iwarp.Displaced, d.tcp.iwarp.BadCRC
	s.Displaced.Add(d.tcp.displaced)
	s.Mismarked, s.Sealed, s.TLSRefused = d.tcp.mismarked, d.tcp.sealed, d.tcp.tlsRefused
	s.Refused, s.Unanswered = d.tcp.refused, d.tcp.unanswered
	s.Sequences = d.senders.sum()
	s.EvictedConnections = d.roce.Evicted() + d.tcp.evicted + d.udp.evicted
	for _, r := range d.frags {
		x := r.Stats()
		s.EvictedDatagrams += x.EvictedFor
		s.IncompleteDatagrams += x.Incomplete
		s.OddFragments += x.Bad + x.Differing
	}
	for g := range d.groups.all() {
		s.add(g.d.Stats())
	}
	return s
}

// add adds what the tracker of a group has counted.
func (s *Stats) add(o Stats) {
	s.Transactions += o.Transactions
	s.Connections += o.Connections
	s.BadICRC += o.BadICRC
	s.Misfits.Add(&o.Misfits)
	s.GoodICRC += o.GoodICRC
	s.NotChecked += o.NotChecked
	s.Undecodable += o.Undecodable
	s.CutShort += o.CutShort
	s.CutBefore += o.CutBefore
	s.Other += o.Other
	s.Fragments += o.Fragments
	s.Joined += o.Joined
	s.JoinedPackets += o.JoinedPackets
	s.NotSplit += o.NotSplit
	s.EvictedConnections += o.EvictedConnections
	s.EvictedDatagrams += o.EvictedDatagrams
	s.IncompleteDatagrams += o.IncompleteDatagrams
	s.OddFragments += o.OddFragments
	s.BadCRC += o.BadCRC
	s.Misframed.Add(o.Misframed)
	s.Differing.Add(o.Differing)
	s.Displaced.Add(o.Displaced)
	s.Mismarked.Add(o.Mismarked)
	s.Sealed.Add(o.Sealed)
	s.TLSRefused.Add(o.TLSRefused)
	s.Rejected.Add(o.Rejected)
	s.Refused.Add(o.Refused)
	s.Unanswered.Add(o.Unanswered)
	s.Asked.Add(o.Asked)
	s.Sampled.Add(&o.Sampled)
	s.OneWay.Add(o.OneWay)
}

// Memory tells how much the Decoder holds and has held; of the trackers of Options.Trackers, each has a budget of its own.
func (d *Decoder) Memory() *memory.Budget { return d.memory.budget }

// Orphans returns what belongs to no transaction.
func (d *Decoder) Orphans() transaction.Stats {
	s := d.tx.Stats
	for g := range d.groups.all() {
		s.Add(&g.d.tx.Stats)
	}
	return s
}

// Open iterates over the transactions that have not ended, ordered by first packet: see
// transaction.Tracker.Open. It must not be called during Run or Batch.
func (d *Decoder) Open() iter.Seq[*transaction.Transaction] { return d.tx.Open() }

// Oldest is the number of the first packet of the oldest transaction that was not emitted yet; false if there is none.
func (d *Decoder) Oldest() (packet uint64, ok bool) { return d.tx.Oldest() }

// OpenCount is how many transactions have not ended. Like Open, call it between batches.
func (d *Decoder) OpenCount() int { return d.tx.Under() }

// Recycle takes back a transaction that was emitted with Options.Transactions.Detach, between batches or in
// emit. With Options.Concurrent, Run does that itself.
func (d *Decoder) Recycle(tx *transaction.Transaction) { d.tx.Recycle(tx) }

// Batch decodes a batch of packets, without the concurrency of Run.
func (d *Decoder) Batch(b *capture.Batch) {
	d.single.begin()
	d.track(b, &d.single)
}

// dissectedAtOnce is how many packets are dissected before they are tracked, if nobody has dissected the batch: what is known of
// them then fits the first-level cache.
const dissectedAtOnce = 32

// track takes the packets of a batch. If they are not dissected yet, they are here, a few at a time.
func (d *Decoder) track(b *capture.Batch, x *dissection) {
	for from := 0; from < len(b.Packets); from = x.done {
		if from == x.done {
			x.more(b, dissectedAtOnce)
		}
		d.dissected(b, x, from)
	}
}

// dissected takes the packets of a batch that x has dissected last: those from one on.
func (d *Decoder) dissected(b *capture.Batch, x *dissection, from int) {
	packets := b.Packets[from:x.done]
	units := x.units[:len(packets)]
	arrival := d.observer.Arrival
	for i := range packets {
		if d.stop.Load() {
			return
		}
		p, u := &packets[i], &units[i]
		if u.Full >= 0 {
			if arrival != nil {
				arrival(p, nil)
			}
			d.inFull(b, from+i, &x.full[u.Full], x.roce)
			continue
		}
		if arrival != nil {
			arrival(p, &u.Fast)
		}
		if p.Time < d.stats.Last.Time-MaxBack {
			d.stats.back(p)
		}
		d.stats.seen(p)
		tap, tenant := p.Tap, uint64(0)
		if d.tunnels.seen {
			tap, tenant = d.tunnels.bare(p)
		}
		d.counted(1, uint64(p.Length))
		c := d.roce.Fast(p, tap, tenant, &u.Fast)
		if headers := d.observer.Headers; headers != nil {
			headers(p, &u.Fast, c)
		}
		d.memory.budget.Enforce()
	}
}

// seen counts a packet. The caller compares its time with that of the packet before: with the comparison, the compiler would not inline seen.
func (s *Stats) seen(p *capture.Packet) {
	s.Packets++
	s.Bytes += uint64(p.Length)
	s.Last = rdma.Ref{Time: p.Time, Number: p.Number}
	if !s.First.Seen() {
		s.First = s.Last
	}
}

// back notes a packet that is stamped earlier than the one before, if there is one.
func (s *Stats) back(p *capture.Packet) {
	if s.Last.Seen() {
		s.Backwards.note(p, s.Last.Time)
	}
}

// saw counts packets.
func (s *Stats) saw(packets []capture.Packet, bytes uint64) {
	if n := len(packets); n > 0 {
		first, last := &packets[0], &packets[n-1]
		s.Packets += uint64(n)
		s.Bytes += bytes
		if !s.First.Seen() {
			s.First = rdma.Ref{Time: first.Time, Number: first.Number}
		}
		before := first.Time
		if s.Last.Seen() {
			before = s.Last.Time
		}
		for i := range packets {
			p := &packets[i]
			if p.Time < before-MaxBack {
				s.Backwards.note(p, before)
			}
			before = p.Time
		}
		s.Last = rdma.Ref{Time: last.Time, Number: last.Number}
	}
}

// fast takes a packet of the fast path, in a group, where no observer wants to see it.
func (d *Decoder) fast(p *capture.Packet, u *roce.Unit, tap uint16, tenant uint64) {
	d.counted(1, uint64(p.Length))
	d.roce.Fast(p, tap, tenant, &u.Fast)
	d.memory.budget.Enforce()
}

// counted counts packets of the fast path.
func (d *Decoder) counted(packets, bytes uint64) {
	d.stats.GoodICRC += packets
	d.tally.fast += packets
	d.tally.fastBytes += bytes
}

// inFull takes packet i of b, which is more than a FastPacket can say: f, with its InfiniBand packets in list.
func (d *Decoder) inFull(b *capture.Batch, i int, f *full, list []roce.Packet) {
	p := &b.Packets[i]
	if d.opt.Clock == ClockERSPAN {
		p.Time = d.clock.adjust(&f.frame, p.Time)
	}
	if p.Time < d.stats.Last.Time-MaxBack {
		d.stats.back(p)
	}
	d.stats.seen(p)
	ref := rdma.Ref{Time: p.Time, Number: p.Number}
	if len(f.frame.Tunnels) > 0 {
		d.senders.note(p, f.frame.Tunnels, 0)
		if !d.tunnels.seen {
			d.tunnels.begin(b.Packets[:i])
		}
	}
	if f.frame.Proto == link.Fragment {
		d.fragment(p, f, ref)
	} else {
		d.cutBefore(p, &f.frame)
		d.unit(p, f, f.in(list), ref)
	}
	d.memory.budget.Enforce()
}

// fragment collects IP fragments and decodes what they make.
func (d *Decoder) fragment(p *capture.Packet, u *full, ref rdma.Ref) {
	f := d.defragment(p, u)
	if f == nil {
		return
	}
	whole := full{frame: *f}
	d.joined.roce = d.joined.roce[:0]
	d.joined.upper(&whole)
	d.unit(p, &whole, d.joined.roce, ref)
}

// defragment collects IP fragments. It returns the datagram that they make, nil if it lacks some.
func (d *Decoder) defragment(p *capture.Packet, u *full) *link.Frame {
	d.stats.Fragments++
	d.cutBefore(p, &u.frame)
	f := d.frags[0].Add(&u.frame, p.Time)
	if f != nil && f.Proto == link.Fragment { // a datagram in a tunnel whose own datagram was fragmented
		f = d.frags[1].Add(f, p.Time)
	}
	d.countFragments()
	if f == nil {
		d.tally.add(kindOf(&u.frame), p.Length)
		if d.observer.Packet != nil {
			d.report(p, u, nil, nil, 0)
		}
		return nil
	}
	d.joined.unwrap(f)
	if len(f.Tunnels) > 0 {
		d.senders.note(p, f.Tunnels, len(u.frame.Tunnels))
		if !d.tunnels.seen {
			d.tunnels.begin(nil)
		}
	}
	return f
}

// unit takes one dissected packet.
func (d *Decoder) unit(p *capture.Packet, u *full, packets []roce.Packet, ref rdma.Ref) {
	tap, tenant := d.place(p, &u.frame)
	d.placed(p, u, packets, ref, tap, tenant)
}

// place is the capture point and the tenant of a frame.
func (d *Decoder) place(p *capture.Packet, f *link.Frame) (tap uint16, tenant uint64) {
	if len(f.Tunnels) > 0 || d.tunnels.seen {
		return d.tunnels.place(p, f)
	}
	return p.Tap, 0
}

// placed takes one dissected packet of a capture point and a tenant.
func (d *Decoder) placed(p *capture.Packet, u *full, packets []roce.Packet, ref rdma.Ref, tap uint16, tenant uint64) {
	if u.fast {
		d.inTunnel(p, u, tap, tenant)
		return
	}
	var c *rdma.Connection
	kind := kindOf(&u.frame)
	d.paused(p, &u.frame, ref)
	switch u.fabric {
	case rdma.RoCEv2, rdma.RoCEv1, rdma.InfiniBand:
		kind.Class, kind.Fabric, kind.Port = ClassRDMA, u.fabric, 0
		if n := len(packets); n > 1 {
			d.stats.Joined++
			d.stats.JoinedPackets += uint64(n)
		}
		for i := range packets {
			q := &packets[i]
			switch q.ICRC {
			case roce.Good:
				d.stats.GoodICRC++
			case roce.Bad:
				d.stats.BadICRC++
				if len(packets) == 1 {
					d.stats.Misfits.Look(&u.frame, p.Number)
				}
			default:
				d.stats.NotChecked++
			}
			if q.Problem != roce.NoProblem && q.Problem != roce.ProblemOpcode {
				kind.Class, kind.Problem = ClassDamaged, Problem{RoCE: q.Problem}
				if q.Problem == roce.ProblemLength || q.Problem == roce.ProblemJoined {
					d.stats.NotSplit++
				}
				d.undecodable(p, &u.frame)
				if q.Problem == roce.ProblemCutHeaders {
					c = d.roce.Headless(ref, tap, tenant, &u.frame, q)
				}
				continue
			}
			if u.fabric == rdma.InfiniBand {
				if q.Opcode.Service() == roce.ServiceUD && q.DestQP > 1 && d.ipoib(p, u, q, ref) {
					return
				}
				d.at = place{p, &u.frame, q}
			}
			c = d.roce.Packet(ref, tap, tenant, u.fabric, &u.frame, q, q.ICRC)
		}
	case rdma.TCP:
		c = d.tcp.packet(ref, tap, tenant, &u.frame)
		kind = d.tally.tcp(kind, d.tcp.last, c, p.Length)
	case rdma.UDP:
		if c = d.udp.packet(ref, tap, tenant, &u.frame); c != nil {
			kind = Kind{Class: ClassRPC, Fabric: rdma.UDP, Tunnel: kind.Tunnel}
		} else {
			d.sampled(&u.frame)
		}
	default:
		if p.Link == capture.LinkTrace {
			c, kind = d.recorded(ref, p.Data), Kind{Class: ClassKernel}
		} else if u.frame.Problem != link.NoProblem {
			d.undecodable(p, &u.frame)
		} else {
			d.stats.Other++
		}
	}
	d.tally.add(kind, p.Length)
	if d.observer.Packet != nil {
		d.report(p, u, packets, c, tenant)
	}
}

// recorded takes an event of a kernel.
func (d *Decoder) recorded(ref rdma.Ref, line []byte) *rdma.Connection {
	if d.traced == nil {
		d.traced = traced.New(d.tx, &d.numbers, (&handler{Tracker: d.tx, d: d}).Closed)
		d.traced.Counter = d.observer.Counter
	}
	return d.traced.Event(ref, line)
}

// paused reports a frame of flow control, if it is one, with its sender where its Ethernet header is the outermost.
func (d *Decoder) paused(p *capture.Packet, f *link.Frame, ref rdma.Ref) {
	var x link.Pause
	if d.observer.Watcher == nil || f.Unknown.Layer != link.EtherLayer || !f.Pause(&x) {
		return
	}
	w := rdma.Pause{PerPriority: x.PerPriority, Priorities: x.Priorities, Quanta: x.Quanta}
	if p.Link == capture.LinkEthernet && len(f.Tunnels) == 0 && len(p.Data) >= 12 {
		copy(w.From[:], p.Data[6:])
	}
	d.observer.Watcher.Paused(&w, ref)
}

// inTunnel tracks a packet of the fast path whose frame was decoded, because it came in a tunnel or with an unusual link header.
func (d *Decoder) inTunnel(p *capture.Packet, u *full, tap uint16, tenant uint64) {
	kind := Kind{Class: ClassRDMA, Fabric: rdma.RoCEv2}
	outermost := u.frame.Outermost()
	kind.within(&u.frame)
	d.stats.GoodICRC++
	d.roce.FastWithin(p, tap, tenant, outermost, &u.unit[0].Fast)
	d.tally.add(kind, p.Length)
}

// place is the native InfiniBand packet that is being tracked.
type place struct {
	packet *capture.Packet
	frame  *link.Frame
	q      *roce.Packet
}

// ipoib handles an InfiniBand datagram that carries an IP packet (RFC 4391).
func (d *Decoder) ipoib(p *capture.Packet, u *full, q *roce.Packet, ref rdma.Ref) bool {
	inner := full{frame: link.Frame{Tunnels: d.inIB.Tunnels}}
	if !link.DecodeIPoIB(&u.frame, q.PKey, q.Payload, q.PayloadLen, &inner.frame) {
		return false
	}
	d.inIB.Tunnels = inner.frame.Tunnels
	d.inner(p, &inner, ref)
	return true
}

// message handles a Send of a connected queue pair that carries an IP packet (RFC 4755).
func (d *Decoder) message(s *rdma.Send) bool {
	at := d.at
	inner := full{frame: link.Frame{Tunnels: d.inIB.Tunnels}}
	if !link.DecodeIPoIB(at.frame, at.q.PKey, s.Data, s.Length, &inner.frame) {
		return false
	}
	d.inIB.Tunnels = inner.frame.Tunnels
	ref := s.Last
	f := &inner.frame
	if f.Proto == link.Fragment {
		d.stats.Fragments++
		f = d.frags[1].Add(f, ref.Time)
		d.countFragments()
		if f == nil {
			return true
		}
	}
	if !d.tunnels.seen {
		d.tunnels.begin(nil)
	}
	tap, tenant := d.tunnels.place(at.packet, f)
	switch f.Proto {
	case link.TCP:
		d.tcp.packet(ref, tap, tenant, f)
	case link.UDP:
		d.udp.packet(ref, tap, tenant, f)
	}
	return true
}

// inner takes the frame that another one carried.
func (d *Decoder) inner(p *capture.Packet, u *full, ref rdma.Ref) {
	if u.frame.Proto == link.Fragment {
		d.fragment(p, u, ref)
		return
	}
	if !d.tunnels.seen {
		d.tunnels.begin(nil)
	}
	d.joined.roce = d.joined.roce[:0]
	d.joined.upper(u)
	d.unit(p, u, d.joined.roce, ref)
}

func (d *Decoder) undecodable(p *capture.Packet, f *link.Frame) {
	d.stats.Undecodable++
	if uint64(len(p.Data)) < uint64(p.Length) || f.Cut() {
		d.stats.CutShort++
	}
}

// cutBefore counts a packet if it was cut before it was captured.
func (d *Decoder) cutBefore(p *capture.Packet, f *link.Frame) {
	if f.Cut() && uint64(len(p.Data)) >= uint64(p.Length) {
		d.stats.CutBefore++
	}
}

func (d *Decoder) report(p *capture.Packet, u *full, packets []roce.Packet, c *rdma.Connection, tenant uint64) {
	d.view = PacketView{Packet: p, Frame: &u.frame, Fabric: u.fabric, RoCE: packets, Connection: c, Tenant: tenant}
	d.observer.Packet(&d.view)
}

// flushFragments gives up datagrams of which fragments are missing.
func (d *Decoder) flushFragments() {
	for _, r := range d.frags {
		r.Flush()
	}
}

// Flush ends everything that is still open. The Decoder must not be used afterwards.
func (d *Decoder) Flush() {
	d.at = place{}
	d.flushFragments()
	d.roce.Flush(d.stats.Last)
	d.tcp.flush(d.stats.Last)
	d.udp.flush(d.stats.Last)
	if d.traced != nil {
		d.traced.Flush(d.stats.Last)
	}
	d.tx.Flush()
}
