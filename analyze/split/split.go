// Package split writes one capture as several: by client, server, connection
// or time, of all packets or of those that belong to chosen transactions.
package split

import (
	"io"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/analyze/window"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// By is what a capture is split by.
type By uint8

// Ways to split.
const (
	One        By = iota // all into one file
	Client               // the end of a connection that sends forward calls; equal addresses in different tunnels are two
	Server               // the other end, likewise
	Connection           // as they are numbered
	Time                 // intervals from the first packet on
)

// Name names a file.
type Name struct {
	N          int        // 1, 2, … in the order in which files are begun
	Client     netip.Addr // of Client and Connection
	Server     netip.Addr // of Server and Connection
	Connection int        // of Connection
	// Tunnel, of Client, Server and Connection, is the outermost wrapping of the packets, if it tells equal addresses apart: the
	// Tenant of their connections is not 0.
	Tunnel *rdma.Tunnel
	Start  int64 // of Time: where the interval begins, nanoseconds since 1970
	Rest   bool  // packets that belong to no connection
}

// Options say how a capture is split. Open is needed; zero fields take the
// defaults.
type Options struct {
	By       By
	Interval time.Duration // of Time
	// Match, if set, chooses transactions. Only their packets are kept.
	Match func(*rpc.View) bool
	// Only, if set, chooses connections by their number, and keeps all of their packets. It does not go with
	// Match.
	Only func(connection int) bool
	// NoSetup leaves out the setup of a connection whose setup stands
	// elsewhere, or was not chosen.
	NoSetup bool
	// Rest keeps packets that belong to no connection, in their own file. With Time they are always kept,
	// with Match never.
	Rest bool
	// Open opens a file: to begin it, or to go on at its end. What it returns may be a Truncater and a Remover.
	Open        func(n Name, again bool) (io.WriteCloser, error)
	Taps        func() []capture.Tap
	Application string

	Window    int // bytes of packets held (window.DefaultBytes)
	OpenFiles int // at once (64)
	Files     int // in all (4096)
}

// Stats counts what became of packets.
type Stats struct {
	Packets uint64
	Kept    uint64 // written at least once
	Setup   uint64 // copies of setup packets beside that
	Files   int
	// Stored counts the packets in the files, each copy. After an error they are fewer than Kept and Setup say, and
	// Files counts the files that hold any.
	Stored uint64
	// Chosen counts transactions that Match accepted.
	Chosen uint64
	// NoConnection counts packets that belong to no connection and were left
	// out for that.
	NoConnection uint64
	// Lost counts packets of chosen transactions that had left the window
	// before their transaction ended, or that it had one to belong to; and
	// Torn those transactions.
	Lost, Torn uint64
	// Misplaced counts packets that were put into the interval of their own
	// time, since their transaction was known too late.
	Misplaced uint64
	// Overflow counts packets that would have needed more files than allowed.
	Overflow uint64
	// Divided counts connections that turned out to belong elsewhere after
	// some of their packets had been written.
	Divided uint64
	// SetupLost counts connections whose setup was forgotten for lack of
	// memory.
	SetupLost uint64
}

// Truncater is a file that can be cut after n bytes: after an error, it may end in half of a record.
type Truncater interface{ Truncate(n int64) error }

// Remover is a file that can be removed after it was closed: after an error, it may hold nothing at all.
type Remover interface{ Remove() error }

// Whole reports whether all that was to be kept has been.
func (s *Stats) Whole() bool {
	return s.Lost == 0 && s.Misplaced == 0 && s.Overflow == 0 && s.Divided == 0
}

// Splitter takes packets and transactions from a Decoder.
type Splitter struct {
	opt   Options
	held  *window.Window[place]
	known map[uint64]*txn // open, or with packets held
	view  rpc.View
	stats Stats
	err   error

	waiting waiting
	copies  copies
	conns   conns
	setups  setups
	files   files
	start   int64 // time of the first packet
	targets []target
}

// place is what is known of a packet that is held.
type place struct {
	conn  *conn
	whole uint64 // of an IP fragment: the packet that completed it
	setup bool   // of a connection
	sum   uint64 // see copies; 0 if there is one capture point
	sends bool   // it carries a part of a call or reply
	marks []mark
}

// mark is a transaction that a packet belongs to.
type mark struct {
	*txn
	ack bool // the packet does only acknowledge it
}

// txn is what is known of a transaction.
type txn struct {
	serial uint64
	first  int64 // time of its first packet
	conn   *conn
	ended  bool
	chosen bool
	marks  int    // on packets that are held
	lost   uint64 // packets that went without it
}

// target is a file that a packet goes to, and the connection for which.
type target struct {
	file *file
	conn *conn
}

// New makes a Splitter.
func New(opt Options) *Splitter {
	if opt.OpenFiles <= 0 {
		opt.OpenFiles = 64
	}
	if opt.Files <= 0 {
		opt.Files = 4096
	}
	s := &Splitter{opt: opt, known: make(map[uint64]*txn)}
	s.view.Names = &rpc.Names{}
	s.held = window.New(opt.Window, s.release)
	s.files.opt, s.files.stats = &s.opt, &s.stats
	s.setups.stats = &s.stats
	return s
}

// LimitNames sets how many bytes of names of files are remembered: rpc.Names.Limit.
func (s *Splitter) LimitNames(bytes int) { s.view.Names.Limit = bytes }

// Unwrap sets what opens messages that RPCSEC_GSS protects.
func (s *Splitter) Unwrap(u rpc.Unwrapper) { s.view.Unwrap = u }

// Options makes a Decoder tell the Splitter what it needs. The Decoder has to
// call Transaction, and must not be Concurrent.
func (s *Splitter) Options(opt *decode.Options) {
	opt.Concurrent = false
	opt.Transactions.OnCompletion = true
	opt.Observe(decode.Observer{Packet: s.packet, Closed: s.conns.closed})
	if s.opt.Match != nil || s.opt.By == Time {
		opt.Transactions.Attribute = s.attribute
		opt.Transactions.Withdrawn = func(tx *transaction.Transaction) { s.over(s.known[tx.Serial()]) }
	}
}

// packet takes the next packet.
func (s *Splitter) packet(v *decode.PacketView) {
	if s.stats.Packets++; s.stats.Packets == 1 {
		s.start = v.Packet.Time
	}
	p := s.held.Add(v.Packet)
	conn := s.conns.of(v.Connection)
	p.conn = conn
	p.setup = isSetup(v)
	if s.opt.Match != nil || s.opt.By == Time {
		if p.sum = s.copies.sum(v); p.sum != 0 && len(p.marks) > 0 {
			s.copies.note(p.sum, v.Packet.Number)
		}
	}
	number := v.Packet.Number
	if v.Frame.Proto == link.Fragment {
		s.waiting.fragment(v.Frame, number)
		return
	}
	for _, n := range s.waiting.completed(v) {
		if q := s.held.At(n); q != nil {
			q.conn, q.whole = conn, number
		}
	}
	key, ok := keyOf(v)
	if !ok {
		return
	}
	if conn == nil {
		s.waiting.add(key, number)
		return
	}
	for _, n := range s.waiting.take(key) {
		if q := s.held.At(n); q != nil && q.conn == nil {
			q.conn = conn
		}
	}
}

// attribute records a packet of a transaction.
func (s *Splitter) attribute(tx *transaction.Transaction, p *transaction.Packet) {
	x := s.known[tx.Serial()]
	if x == nil {
		x = &txn{serial: tx.Serial(), first: tx.First().Time, conn: s.conns.of(tx.Connection)}
		s.known[x.serial] = x
	}
	q := s.held.At(p.Ref.Number)
	if q == nil {
		x.lost++
		if s.opt.Match == nil && !p.Beside && s.bucket(p.Ref.Time) != s.bucket(x.first) {
			s.stats.Misplaced++
		}
		return
	}
	ack := p.Role == transaction.Ack
	q.sends = q.sends || p.Role == transaction.CallPart || p.Role == transaction.ReplyPart || p.Role == transaction.DonePart
	for i := range q.marks {
		if m := &q.marks[i]; m.txn == x {
			m.ack = m.ack && ack
			return
		}
	}
	x.marks++
	q.marks = append(q.marks, mark{x, ack})
	if q.sum != 0 {
		s.copies.note(q.sum, p.Ref.Number)
	}
}

// Transaction takes a transaction that has ended.
func (s *Splitter) Transaction(tx *transaction.Transaction) {
	if s.opt.Match == nil {
		s.over(s.known[tx.Serial()])
		return
	}
	v := &s.view
	v.Set(tx)
	x := s.known[tx.Serial()]
	if s.opt.Match(v) {
		s.stats.Chosen++
		if x != nil {
			x.chosen = true
			if x.lost > 0 {
				s.stats.Torn++
				s.stats.Lost += x.lost
			}
		}
	}
	s.over(x)
	v.Learn()
}

// over takes note that a transaction has ended.
func (s *Splitter) over(x *txn) {
	if x != nil {
		x.ended = true
		if x.marks == 0 {
			delete(s.known, x.serial)
		}
	}
}

// bucket is the interval of a time, counted from the first packet.
func (s *Splitter) bucket(at int64) int64 {
	d := at - s.start
	n := d / int64(s.opt.Interval)
	if d < 0 && d%int64(s.opt.Interval) != 0 {
		n--
	}
	return n
}

// release writes a packet that leaves the window.
func (s *Splitter) release(p *capture.Packet, q *place) {
	conn := s.conns.resolve(q.conn)
	s.targets = s.targets[:0]
	s.choose(q)
	if q.whole != 0 {
		if w := s.held.At(q.whole); w != nil {
			s.choose(w)
		}
	}
	if len(q.marks) == 0 && q.sum != 0 {
		s.copied(q)
	}
	if len(s.targets) == 0 {
		s.alone(p, conn)
	}
	if len(q.marks) > 0 && q.sum != 0 && len(s.targets) > 0 {
		if o := s.copies.find(q.sum); o != nil && o.number == p.Number {
			o.file, o.conn = s.targets[0].file, s.targets[0].conn
		}
	}
	for _, m := range q.marks {
		if m.marks--; m.marks == 0 && m.ended {
			delete(s.known, m.serial)
		}
	}
	if len(s.targets) > 0 {
		s.stats.Kept++
	}
	for _, t := range s.targets {
		s.introduce(t, p)
		s.write(t.file, p)
	}
	if q.setup && conn != nil && !s.opt.NoSetup {
		s.setups.keep(conn, p)
	}
	clear(q.marks)
	*q = place{marks: q.marks[:0]} // and its memory for the next packet
}

// copied finds the file for a packet that may be the copy of another one.
func (s *Splitter) copied(q *place) {
	o := s.copies.find(q.sum)
	if o == nil {
		return
	}
	if w := s.held.At(o.number); w != nil {
		s.choose(w)
	} else if o.file != nil {
		s.target(o.file, o.conn)
	}
}

// choose finds the files for a packet of transactions. A TCP segment with a
// call or reply is not taken along for the acknowledgement in it: it would
// bring a transaction that belongs elsewhere.
func (s *Splitter) choose(q *place) {
	if s.opt.Match == nil && s.opt.By != Time {
		return
	}
	for _, m := range q.marks {
		if m.ack && q.sends {
			continue
		}
		if s.opt.Match != nil && !m.chosen {
			if !m.ended {
				m.lost++
			}
			continue
		}
		c := s.conns.resolve(m.conn)
		if s.opt.By == Time {
			s.target(s.files.interval(s.bucket(m.first), s.start), c)
			continue
		}
		s.target(s.files.of(c), c)
	}
}

// alone finds the file for a packet that belongs to no transaction, or where
// these do not count.
func (s *Splitter) alone(p *capture.Packet, conn *conn) {
	switch {
	case s.opt.Match != nil:
	case s.opt.Only != nil && conn == nil:
		s.stats.NoConnection++
	case s.opt.Only != nil && !s.opt.Only(conn.number):
	case s.opt.By == Time:
		s.target(s.files.interval(s.bucket(p.Time), s.start), conn)
	case conn != nil:
		s.target(s.files.of(conn), conn)
	case s.opt.By == One || s.opt.Rest:
		s.target(s.files.rest(), nil)
	default:
		s.stats.NoConnection++
	}
}

// target adds a file, once.
func (s *Splitter) target(f *file, c *conn) {
	if f == nil {
		s.stats.Overflow++
		return
	}
	for _, t := range s.targets {
		if t.file == f {
			return
		}
	}
	s.targets = append(s.targets, target{f, c})
}

// introduce writes the setup of a connection to a file that it is new in, so
// that the file can be decoded alone.
func (s *Splitter) introduce(t target, p *capture.Packet) {
	if t.conn == nil || s.opt.NoSetup || s.opt.Match == nil && s.opt.By != Time || !t.file.meets(t.conn) {
		return
	}
	for _, old := range s.setups.of(t.conn) {
		if old.Number < p.Number {
			s.stats.Setup++
			s.write(t.file, old)
		}
	}
}

func (s *Splitter) write(f *file, p *capture.Packet) {
	if s.err == nil {
		s.err = s.files.write(f, p)
	}
}

// Err is the first error of a file.
func (s *Splitter) Err() error { return s.err }

// Close writes what is held, after the last transaction, and closes all files.
func (s *Splitter) Close() (Stats, error) {
	s.held.Flush()
	if err := s.files.close(); s.err == nil {
		s.err = err
	}
	files, stored := s.files.stored()
	s.stats.Stored = stored
	if s.err != nil {
		s.stats.Files = files
	}
	return s.stats, s.err
}
