package check

import (
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Options say what is checked.
type Options struct {
	Profile Profile
	// Rules are those that are checked; All() selects all.
	Rules Selection
	// Match, if set, limits the findings to transactions that it accepts. Findings without a transaction are
	// then left out. It is called once per transaction; the result is not cached.
	Match func(*rpc.View) bool
	// Peek opens what RPCSEC_GSS has wrapped in calls that are still open, in order to name them. It may be
	// nil.
	Peek rpc.Unwrapper
	// Wanted, if set, reports whether somebody reads what else is found of a rule with a severity. If not, it is counted only: see
	// Checker.Unread. What is not wanted once is never wanted again.
	Wanted func(*Rule, Severity) bool
	// Apart counts by connection, and keeps findings, so that State can save them.
	Apart bool
}

// Checker finds breaches of rules. A Decoder has its Observer, and it is passed each transaction. All calls must come from
// one goroutine: do not set Options.Concurrent. Without Observer.Headers it finds the same, and takes longer.
type Checker struct {
	// What most messages and transactions ask for lies together.
	last  *conn
	calls transaction.States[callState]

	opt  Options
	emit func(*Finding)
	on   [ruleCount]Severity // Off if not selected

	conns  map[*rdma.Connection]*conn
	recent [lastUsed]*conn      // by the ID of the connection
	gone   [64]*rdma.Connection // recently closed
	goneAt int
	mem    memory

	numbers uint64 // of conns

	attempts attempts
	recalls  recalls
	channels map[channel]*backchannel
	unread   map[*rdma.Connection]bool // connections with COMPOUNDs that cannot be read
	astray   []int                     // connections with callbacks that no backchannel was bound to
	pairs    map[pair]*forms

	audience  audience
	pending   []pending
	finishing bool
	view      rpc.View                 // of a transaction that is still open
	owner     *transaction.Transaction // of the memory that the current operation is on
	packet    packet                   // at hand
	tc        txCheck

	stats *table // of the current connection, if they are told apart
	apart apart
}

// Count is how often a rule was checked, and the results.
type Count struct {
	Judged    uint64              // times that the rule was judged
	Found     uint64              // findings
	Known     uint64              // findings that are known deviations
	Worst     Severity            // of the findings
	By        [3]uint64           // findings by Party
	First     rdma.Ref            // first finding; the one with the lowest packet number
	NotJudged [reasonCount]uint64 // times that the rule was not judged, by reason
}

// Skipped is how often the rule was not judged.
func (c *Count) Skipped() (n uint64) {
	for _, r := range c.NotJudged {
		n += r
	}
	return n
}

// Observer returns what a Decoder has to tell the Checker.
func (c *Checker) Observer() decode.Observer {
	return decode.Observer{
		Packet: c.Packet, Headers: c.headers(), Message: c.Message, Stray: c.Stray, Operation: c.Operation,
		OpStart: c.OpStart, OpData: c.OpData, Event: c.Event, Segment: c.Segment, Merged: c.Merged, Closed: c.Closed,
	}
}

// New makes a Checker that reports to emit, which may keep the Finding.
func New(opt Options, emit func(*Finding)) *Checker {
	c := &Checker{
		opt: opt, emit: emit,
		conns: make(map[*rdma.Connection]*conn), recalls: make(recalls),
		channels: make(map[channel]*backchannel), unread: make(map[*rdma.Connection]bool), pairs: make(map[pair]*forms),
	}
	for i := range rules {
		if opt.Rules[i] {
			c.on[i] = rules[i].Severity[opt.Profile]
		}
	}
	c.stats = &c.apart.rest
	if opt.Apart {
		c.apart.on, c.apart.byID = true, make(map[int]*own)
	}
	c.view.Unwrap = opt.Peek
	c.mem.init()
	c.tc.c = c
	return c
}

// Enabled reports whether a rule is checked.
func (c *Checker) Enabled(r *Rule) bool { return c.on[r.id] != Off }

// Severity is the severity of a breach of the rule, or Off if the rule is not checked.
func (c *Checker) Severity(r *Rule) Severity { return c.on[r.id] }

// Profile is the profile from the Options.
func (c *Checker) Profile() Profile { return c.opt.Profile }

// Count returns how often a rule was checked, and with what result. If connections are told apart, it is complete
// after Finish.
func (c *Checker) Count(r *Rule) *Count { return &c.apart.rest[r.id] }

// Totals counts findings by severity, like Count.
func (c *Checker) Totals() (n [Error + 1]uint64) {
	return c.apart.total
}

func (c *Checker) ok(r id) {
	if c.on[r] != Off {
		c.stats[r].Judged++
	}
}

func (c *Checker) skip(r id, why Reason) {
	if c.on[r] != Off {
		c.stats[r].NotJudged[why]++
	}
}

// pending is a finding that holds only if the capture lacks no packets. That is known once the current packet
// has been tracked.
type pending struct {
	f    *Finding
	c    *conn
	gaps [2]uint64 // values that the counters of both sides must still have
	side uint8     // sides that matter, one bit each
	// until is a time that the capture must have reached.
	until int64
	// If told is not nil, the finding waits until a side's stream goes on, which shows what the capture lacks: told counts its segments,
	// and was as many at first. late says that the Read Request came then.
	told *uint64
	was  uint64
	late bool
	part openRead // the Read Response that came first
}

const (
	maxPending = 4096
	maxUntold  = 16 // findings that wait for a stream
)

// report counts a finding that holds in any case, and emits it if somebody reads it.
func (c *Checker) report(f *Finding) {
	stats, total := c.apart.of(f)
	r := f.Rule.id
	if c.on[r] == Off {
		return
	}
	sev := c.severity(r, f.Known)
	f.Severity = sev
	n := &stats[r]
	n.Judged++
	n.Found++
	if f.Known != "" {
		n.Known++
	}
	n.Worst = max(n.Worst, sev)
	n.By[f.By]++
	if !n.First.Seen() || f.Ref.Number < n.First.Number {
		n.First = f.Ref
	}
	total[sev]++
	read := c.wanted(r, sev)
	c.apart.keep(f)
	if !read {
		c.audience.counted(f)
		return
	}
	c.emit(f)
}

// await defers a finding until the current packet has been tracked.
func (c *Checker) await(p pending) {
	if len(c.pending) >= maxPending {
		c.skip(p.f.Rule.id, Limit)
		return
	}
	c.pending = append(c.pending, p)
}

// settle decides about the pending findings.
func (c *Checker) settle() {
	kept := 0
	for i := range c.pending {
		p := &c.pending[i]
		if p.told != nil && *p.told == p.was && !c.finishing && kept < maxUntold {
			c.pending[kept] = *p
			kept++
			continue
		}
		c.enter(p.c)
		lost := false
		for s := range rdma.Side(2) {
			if p.side&(1<<s) != 0 && p.c.missing(s) != p.gaps[s] {
				lost = true
			}
		}
		switch {
		case lost:
			c.skip(p.f.Rule.id, Gaps)
		case p.late:
			c.skip(p.f.Rule.id, Reordered)
		case c.packet.ref.Time < p.until:
			c.skip(p.f.Rule.id, NotAcked)
		default:
			c.report(p.f)
		}
	}
	clear(c.pending[kept:])
	c.pending = c.pending[:kept]
	if c.last != nil {
		c.enter(c.last)
	}
}

// Finish checks what had to wait for the end of the capture. The Decoder must have been flushed (Decoder.Run
// does that).
func (c *Checker) Finish() {
	c.finishing = true
	c.settle()
	for _, k := range c.sorted() {
		c.closed(k)
	}
	c.settle()
	c.leave()
	c.unreturned()
	c.oneForm()
}

// program is the name and version of a program.
func program(v *rpc.View) string { return string(text.Program(nil, v)) }

// procedure names a procedure by its numbers.
func procedure(program, version, proc uint32) (string, string) {
	def := nfs.Lookup(program, version)
	if def == nil {
		return "", ""
	}
	name := ""
	if p := def.Procedure(proc); p != nil {
		name = p.Name
	}
	return def.Name, name
}
