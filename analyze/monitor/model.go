package monitor

import (
	"errors"
	"time"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Options of a Model. The zero value is a good choice.
type Options struct {
	Decode   decode.Options // Transactions.Detach, OnCompletion and Packets, Observer and Closed are set by the Model
	Interval time.Duration  // 1s
	History  int            // intervals remembered: 240, at most 600
	Stuck    time.Duration  // a call is stuck if no packet of it was seen for this long: 1s
	Linger   time.Duration  // how long ended transactions stay listed: 10s
	Packets  int            // packets listed per transaction, for its ladder: 256
	Filter   *filter.Filter // transactions that count; nil means all
	Names    int            // bytes of remembered file names: rpc.Names.Limit
	Fabric   int            // bytes of what is remembered of losses: fabric.Options.Memory
	Sessions int            // bytes of what is remembered of sessions: session.DefaultMemory
	Why      int            // memory of the diagnosis, in bytes: 16 MiB
	File     string         // diagnosis.Options.File
	Groups   bool           // snapshots include the totals of all transactions
	// Alarms are the thresholds that each interval is compared with.
	Alarms Thresholds
	// Message, if set, is called with each ended transaction, for example to report malformed messages. It
	// must not keep the view.
	Message func(*rpc.View)
	// Unwrap opens what RPCSEC_GSS wrapped; it may be nil.
	Unwrap rpc.Unwrapper
}

func (o *Options) defaults() {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.History <= 0 {
		o.History = 240
	}
	o.History = min(o.History, maxHistory)
	if o.Stuck <= 0 {
		o.Stuck = time.Second
	}
	if o.Linger <= 0 {
		o.Linger = 10 * time.Second
	}
	if o.Packets <= 0 {
		o.Packets = 256
	}
	if o.Why <= 0 {
		o.Why = 16 << 20
	}
}

// Model is a decoder with the state of a live view. All its methods must be called from one goroutine.
type Model struct {
	visits  int  // visits to open transactions that intervals, and the snapshots of them, may still make
	visited int  // all that were made
	closing bool // a snapshot is one of an interval, of which there may be as many as packets

	opt Options
	d   *decode.Decoder

	view rpc.View // for ended transactions
	look rpc.View // for listed transactions
	row  rower

	filter *filter.Filter
	all    *stats
	some   *stats // transactions that pass the filter; nil without a filter
	conns  connections
	uses   *session.Recorder
	why    why
	wires  wires
	over   alarmSet // in the latest interval
	raised [NumAlarms]Raised
	linger linger
	hold   bool
	listed []uint64        // open transactions in the latest snapshot
	keep   map[uint64]bool // those of them listed when the list was frozen

	start   int64 // start of the current interval
	end     int64
	started bool
	now     int64
	latest  int64         // now, as of the latest packets
	span    time.Duration // length of the latest complete interval
	mark    decode.Stats  // counters at its end
	passed  decode.Stats  // packets and bytes in it
	closed  bool          // it exists
	open    int           // open calls at its end
	stuck   int

	flushed   bool
	err       error
	number    uint64
	every     func() // after each interval
	watch     uint64
	width     int
	plain     bool // ASCII only
	detail    *Detail
	drops     func() (uint64, bool)
	seen      uint64 // ended transactions
	delivered uint64 // of these, how many Options.Message was called with in an earlier pass
	lingering int64
}

// New makes a Model.
func New(opt Options) *Model {
	opt.defaults()
	m := &Model{opt: opt, filter: opt.Filter}
	names := &rpc.Names{Limit: opt.Names}
	m.view.Names, m.look.Names = names, names
	m.view.Unwrap, m.look.Unwrap = opt.Unwrap, opt.Unwrap
	m.lingering = int64(opt.Linger)
	dec := opt.Decode
	dec.Concurrent = false
	dec.Transactions.OnCompletion = true // a live view does not wait for older transactions
	dec.Transactions.Detach = true
	dec.Transactions.Packets = opt.Packets
	m.uses = session.New(nil)
	m.uses.Live()
	if opt.Sessions > 0 {
		m.uses.Limit(opt.Sessions)
	}
	dec.Observe(decode.Observer{Send: func(c *rdma.Connection, _ *rdma.Send) { m.conns.see(c) }, Closed: m.conns.closed})
	why := diagnosis.Limited(opt.Why)
	why.File, why.Live = opt.File, true
	m.why.Recorder = diagnosis.New(why)
	m.why.Attach(&dec, opt.Fabric, m.uses)
	dec.Observe(decode.Observer{Closed: m.why.Closed})
	m.d = decode.New(dec, m.transaction)
	m.linger.free = m.d.Recycle
	m.conns.limit = min(maxConnections, m.d.Memory().Limit()/bytesPerConnection)
	m.all = newStats(0, opt.History)
	if m.filter != nil {
		m.some = newStats(0, opt.History)
	}
	return m
}

// anew makes a Model for another pass over the same packets, with a filter from
// the beginning and, if page is set, all that have ended from this number on.
func (m *Model) anew(f *filter.Filter, page *uint64) *Model {
	opt := m.opt
	opt.Filter = f
	x := New(opt)
	x.every, x.drops = m.every, m.drops
	x.watch, x.width, x.plain = m.watch, m.width, m.plain
	x.linger.watch = m.linger.watch
	x.number, x.delivered = m.number, max(m.seen, m.delivered)
	if page != nil {
		x.linger.paging, x.linger.from = true, *page
	}
	return x
}

// Packets decodes packets in capture order, and closes the intervals that they complete.
func (m *Model) Packets(list []capture.Packet) {
	for len(list) > 0 {
		m.Advance(list[0].Time)
		n := 0
		for n < len(list) && list[n].Time < m.end && list[n].Time >= m.start-backwards {
			m.now = max(m.now, list[n].Time)
			n++
		}
		n, m.latest = max(n, 1), m.now
		m.d.Batch(&capture.Batch{Packets: list[:n]})
		list = list[n:]
	}
}

// backwards is how far, in nanoseconds, the clock may go back before the current interval is restarted: a
// packet from the future must not stop all others from counting.
const backwards = 10e9

// Advance closes intervals up to a capture time.
func (m *Model) Advance(t int64) {
	if t > 1<<62 || t < -1<<62 {
		return // not a clock: interval lengths are 64-bit differences
	}
	if !m.started {
		m.started = true
		m.begin(t)
		m.now = t
		m.all.since = t
		if m.some != nil {
			m.some.since = t
		}
		return
	}
	if t < m.start-max(backwards, int64(m.opt.Interval)) {
		m.begin(t)
		m.now = t
		return
	}
	if gap := t - m.end; gap >= 0 && gap/int64(m.opt.Interval) >= maxCatchUp {
		// As if everything before had been one interval: a clock that jumps must not cost more than a few
		// intervals.
		m.now = m.end
		m.close(m.opt.Interval)
		m.begin(t - gap%int64(m.opt.Interval)) // the beginning of the interval as if time had not jumped
		m.now = t
		return
	}
	for t >= m.end {
		m.now = m.end
		m.close(m.opt.Interval)
		m.start, m.end = m.end, m.end+int64(m.opt.Interval)
	}
	m.now = max(m.now, t)
}

// begin starts the interval that contains a time. The first one starts at the first packet, wherever a
// capture is on the clock.
func (m *Model) begin(t int64) { m.start, m.end = t, t+int64(m.opt.Interval) }

// close ends the current interval.
func (m *Model) close(span time.Duration) {
	st := m.d.Stats()
	idle := m.closed && m.passed.Packets == 0 && st.Packets == m.mark.Packets
	open, stuck := m.open, m.stuck
	// Intervals may come as often as packets, and each examines all open transactions. If that is too much
	// work for the number of packets, the count of an earlier interval is kept.
	m.visits = min(m.visits+minVisits+visitsEach*int(st.Packets-m.mark.Packets), maxVisits)
	if (!idle || open <= maxOpenTried) && open <= m.visits {
		m.visits -= open
		open, stuck = 0, 0
		for tx := range m.d.Open() {
			m.visited++
			if !tx.Reply.Seen() {
				open++
				if m.now-activity(tx) >= int64(m.opt.Stuck) {
					stuck++
				}
			}
		}
		m.open, m.stuck = open, stuck
	}
	m.all.close(m.start, open, stuck, idle)
	if m.some != nil {
		m.some.close(m.start, open, stuck, idle)
	}
	if !idle {
		m.conns.roll()
		m.wires.roll(m.why.Fabric())
		m.why.Adapters().Roll()
		m.why.Roll()
	}
	m.uses.Roll(m.now, int64(span))
	m.passed = decode.Stats{Packets: st.Packets - m.mark.Packets, Bytes: st.Bytes - m.mark.Bytes}
	m.mark, m.span, m.closed = st, span, true
	m.raise()
	if m.every != nil {
		m.closing = true
		m.every()
		m.closing = false
	}
}

// transaction handles a transaction that has ended.
func (m *Model) transaction(tx *transaction.Transaction) {
	v := &m.view
	v.Set(tx)
	if m.seen++; m.opt.Message != nil && m.seen > m.delivered {
		m.opt.Message(v)
	}
	now := m.d.Stats().Last.Time
	failed := v.Failed()
	total := int64(-1)
	if p, ok := tx.Phases(); ok && p.Total >= 0 {
		total = int64(p.Total)
	}
	client := m.row.host(tx.Client())
	m.all.add(v, client, now)
	m.conns.add(tx, failed, total)
	counts := true
	if m.filter != nil {
		if counts = m.filter.Match(v); counts {
			m.some.add(v, client, now)
		}
	}
	m.why.Transaction(v)
	v.Learn()
	m.uses.Transaction(v)
	if m.linger.paging && counts {
		m.linger.turn(tx, now, total)
		return
	}
	if counts && !m.hold || tx.Serial() == m.linger.watch {
		at := now
		if tx.Reply.Seen() {
			at = tx.Reply.Last.Time
		}
		m.linger.add(tx, at, total, failed || tx.State != transaction.Complete)
		return
	}
	if m.hold && m.keep[tx.Serial()] {
		m.linger.aside(tx, now, total)
		return
	}
	m.d.Recycle(tx)
}

// Flush ends the input: open calls will get no reply. err is the reason, nil at the end of the input.
func (m *Model) Flush(err error) {
	if m.flushed {
		return
	}
	m.d.Flush()
	m.flushed, m.err = true, err
	if m.started && (m.now > m.start || !m.closed || m.all.cur.count > 0) {
		m.close(time.Duration(max(m.now-m.start, 1)))
	}
	if m.now == m.latest {
		// A clock that was set back has not caught up: the end is, as in a report, the time of the last packet.
		m.now = m.d.Stats().Last.Time
	}
}

// SetFilter counts only transactions for which the filter holds, from now on;
// nil counts all, from the beginning. After the end of the input, it only
// chooses among those that are still listed; a Feed that can read its input again
// makes another pass instead.
func (m *Model) SetFilter(f *filter.Filter) {
	m.filter, m.some = f, nil
	if f == nil || m.flushed {
		return
	}
	m.some = newStats(m.now, m.opt.History)
	m.linger.keep(func(tx *transaction.Transaction) bool {
		m.look.Set(tx)
		return f.Match(&m.look)
	})
}

// SetInterval changes the interval length. The counts of intervals with the old length are dropped, the
// totals are not.
func (m *Model) SetInterval(d time.Duration) {
	d = min(max(d, time.Millisecond), 24*time.Hour)
	if d == m.opt.Interval {
		return
	}
	m.opt.Interval = d
	m.begin(m.now)
	m.mark = m.d.Stats()
	m.closed = false
	m.all.restart()
	if m.some != nil {
		m.some.restart()
	}
	m.uses.Restart(m.now)
	for range 2 {
		m.conns.roll()
		m.wires.roll(m.why.Fabric())
		m.why.Adapters().Roll()
		m.why.Roll()
	}
}

// Interval is the interval length.
func (m *Model) Interval() time.Duration { return m.opt.Interval }

// SetLinger changes how long ended transactions stay listed. A negative time keeps them until others take
// their place.
func (m *Model) SetLinger(d time.Duration) { m.lingering = int64(d) }

// Hold freezes the list of transactions, so that those on a frozen screen can still be opened.
func (m *Model) Hold(on bool) {
	if on && !m.hold {
		m.keep = make(map[uint64]bool, len(m.listed))
		for _, serial := range m.listed {
			m.keep[serial] = true
		}
	}
	m.hold = on
}

// Watch requests one transaction in full, drawn for a number of columns; serial 0 ends that. plain selects
// ASCII only.
func (m *Model) Watch(serial uint64, width int, plain bool) {
	if serial != m.watch || width != m.width {
		m.detail = nil
	}
	m.watch, m.width, m.plain = serial, width, plain
	m.linger.look(serial)
}

// Every calls f whenever an interval is complete, on the goroutine of the Model. f may take a Snapshot.
func (m *Model) Every(f func()) { m.every = f }

// Drops sets the function that returns how many packets the source lost.
func (m *Model) Drops(f func() (uint64, bool)) { m.drops = f }

// Stats are the statistics of the decoder.
func (m *Model) Stats() decode.Stats { return m.d.Stats() }

// Orphans counts what belongs to no transaction.
func (m *Model) Orphans() transaction.Stats { return m.d.Orphans() }

// Report returns the counts since the beginning as a report. The Model must not be used afterwards. The
// report has no time series.
func (m *Model) Report(src latency.Source) *latency.Report {
	st := m.d.Stats()
	src.Packets, src.Bytes, src.First, src.Last = st.Packets, st.Bytes, st.First, st.Last
	return m.counted().rec.Report(src)
}

func (m *Model) counted() *stats {
	if m.some != nil {
		return m.some
	}
	return m.all
}

// Snapshot returns the current state.
func (m *Model) Snapshot() *Snapshot {
	m.number++
	st := m.counted()
	s := &Snapshot{
		Time: m.now, First: m.all.since, Interval: m.opt.Interval, Since: st.since,
		Ended: m.flushed, Err: m.err, Decoder: m.d.Stats(), Orphans: m.d.Orphans(),
	}
	if errors.Is(m.err, errStopped) {
		s.Err = nil
	}
	if m.filter != nil {
		s.Filter = m.filter.String()
	}
	if m.drops != nil {
		s.Drops, s.HasDrops = m.drops()
	}
	if !m.started {
		s.Since, s.First = 0, 0
		return s
	}
	m.openRows(s)
	m.endedRows(s)
	s.History = st.slots.list()
	if m.closed && len(s.History) > 0 {
		s.Now, s.HasNow, s.NowSpan = s.History[len(s.History)-1], true, m.span
		s.Packets, s.Wire = m.passed.Packets, m.passed.Bytes
	}
	m.operations(s, st)
	s.Connections, s.Health = m.conns.list()
	s.EndedConns, s.ConnsRest = m.conns.gone, m.conns.gone-len(m.conns.ended)
	m.fabric(s)
	m.whys(s)
	at := m.now
	if m.flushed {
		at = 0
	}
	s.Sessions, s.SessionsRest = m.uses.Uses(at, listedSessions)
	s.Files, s.FilesRest = st.files.list(listedUsage)
	s.Clients, s.ClientsRest = st.clients.list(listedUsage)
	s.FilesGone, s.ClientsGone = st.files.gone.Usage, st.clients.gone.Usage
	s.FilesTime, s.ClientsTime = st.files.time, st.clients.time
	s.FilesNow, s.ClientsNow = st.files.active(), st.clients.active()
	s.FilesRest += int(st.files.lost)
	s.ClientsRest += int(st.clients.lost)
	if m.opt.Groups {
		s.Groups = m.all.totals()
	}
	s.Over, s.Raised = m.over.list(), m.raised
	s.Paged, s.PageFrom, s.PageAll = m.linger.paging, m.linger.from, m.linger.passed
	s.Detail = m.inFull()
	return s
}

// listedSessions is how many sessions and clients a Snapshot lists: those that were busy last.
const listedSessions = 64

// listedUsage is how many files or clients a Snapshot lists.
const listedUsage = 240

func (m *Model) operations(s *Snapshot, st *stats) {
	groups := st.totals()
	s.Total = st.sum
	s.Ops = make([]Operation, 0, len(st.ops))
	for i, x := range st.ops {
		o := Operation{
			Name: x.name, Data: x.last.data, Errors: x.last.errors, Time: x.last.time, Max: x.most, Parts: x.lastPart,
			Now:    Point{Count: x.last.count, Bytes: x.last.bytes, P50: x.p50, P99: x.p99},
			Points: st.slots.points(x.points),
		}
		if i < len(groups) && i < maxOperations {
			o.Total = groups[i]
		}
		s.Ops = append(s.Ops, o)
	}
}

// openRows lists open transactions.
func (m *Model) openRows(s *Snapshot) {
	// As in close: with too many open transactions for the number of packets, the first are listed, and counts of an
	// earlier interval are kept.
	all := !m.closing || m.open <= max(m.visits, maxOpenRows)
	m.conns.idle(all)
	m.listed = m.listed[:0]
	tried := 0
	for tx := range m.d.Open() {
		if m.visited++; m.closing {
			m.visits--
		}
		if !all && (len(s.Rows) >= maxOpenRows || tried >= maxOpenTried) {
			s.Open, s.Stuck = max(s.Open, m.open), max(s.Stuck, m.stuck)
			s.Beyond = s.Open - len(s.Rows)
			return
		}
		stuck := false
		if tx.Reply.Seen() {
			s.Unacked++
		} else {
			s.Open++
			stuck = m.now-activity(tx) >= int64(m.opt.Stuck)
			if stuck {
				s.Stuck++
			}
			if s.Open == 1 {
				s.Oldest = max(m.now-tx.First().Time, 0)
			}
		}
		if x := m.conns.by[tx.Connection.Resolve()]; all && x != nil && !tx.Reply.Seen() {
			if tx.Backward {
				x.backward++
			} else {
				x.used++
			}
			if stuck {
				x.stuck++
			}
		}
		if len(s.Rows) >= maxOpenRows || tried >= maxOpenTried {
			s.Beyond++
			continue
		}
		tried++
		m.look.Set(tx)
		if m.filter == nil || m.filter.Match(&m.look) {
			s.Rows = append(s.Rows, m.row.row(&m.look, m.now, int64(m.opt.Stuck), 0))
			m.listed = append(m.listed, tx.Serial())
		}
	}
}

// endedRows lists ended transactions.
func (m *Model) endedRows(s *Snapshot) {
	l := &m.linger
	if !m.hold {
		if m.lingering >= 0 && !m.flushed {
			l.expire(m.now - m.lingering)
		}
		l.sweep()
	}
	from := len(s.Rows)
	l.each(func(e *ended) {
		e.shown = true
		if m.filter != nil {
			if m.look.Set(e.tx); !m.filter.Match(&m.look) {
				return
			}
		}
		s.Rows = append(s.Rows, *m.endedRow(e))
	})
	if !l.paging {
		sortEnded(s.Rows[from:])
	}
}

func (m *Model) endedRow(e *ended) *Row {
	if e.row == nil {
		m.look.Set(e.tx)
		r := m.row.row(&m.look, m.now, int64(m.opt.Stuck), e.at)
		e.row = &r
	}
	return e.row
}
