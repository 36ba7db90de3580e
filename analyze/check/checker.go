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
	// Match, if set, limits the findings to transactions for which it holds.
	// Findings that belong to no transaction are left out then. It is called
	// once for each transaction, and not kept.
	Match func(*rpc.View) bool
	// Peek opens what RPCSEC_GSS has wrapped in calls that are still open, to name
	// them; it may be nil.
	Peek rpc.Unwrapper
}

// Checker finds breaches of rules. It is the Observer of a decode.Decoder
// whose Options.Packet and Options.Closed are its methods of these names, and
// is given each transaction. All of this has to happen on one goroutine:
// without Options.Concurrent.
type Checker struct {
	opt  Options
	emit func(*Finding)
	on   [ruleCount]Severity // Off if not selected

	conns  map[*rdma.Connection]*conn
	last   *conn
	gone   [64]*rdma.Connection // closed lately
	goneAt int
	calls  map[*transaction.Transaction]*callState
	spare  []*callState
	mem    memory

	attempts attempts
	recalls  recalls

	pending []pending
	view    rpc.View // of a transaction that is still open
	tagged  bool     // the current Send belongs to a transaction
	latest  rdma.Ref
	tc      txCheck

	stats [ruleCount]Count
	total [Error + 1]uint64
}

// Count is how often one rule was checked, and with what result.
type Count struct {
	Judged    uint64              // times that the rule could be judged
	Found     uint64              // findings
	Known     uint64              // those of Found that are known deviations
	Worst     Severity            // of the findings
	By        [3]uint64           // findings by Party
	First     rdma.Ref            // first finding; the one with the lowest packet number
	NotJudged [reasonCount]uint64 // times that it could not be judged, by reason
}

// Skipped is how often the rule could not be judged.
func (c *Count) Skipped() (n uint64) {
	for _, r := range c.NotJudged {
		n += r
	}
	return n
}

var _ decode.MessageObserver = (*Checker)(nil)

// New makes a Checker that reports to emit. A Finding may be kept.
func New(opt Options, emit func(*Finding)) *Checker {
	c := &Checker{
		opt: opt, emit: emit,
		conns: make(map[*rdma.Connection]*conn),
		calls: make(map[*transaction.Transaction]*callState), recalls: make(recalls),
	}
	for i := range rules {
		if opt.Rules[i] {
			c.on[i] = rules[i].Severity[opt.Profile]
		}
	}
	c.view.Unwrap = opt.Peek
	c.mem.init()
	c.tc.c = c
	return c
}

// Enabled reports whether a rule is checked.
func (c *Checker) Enabled(r *Rule) bool { return c.on[r.id] != Off }

// Severity is the severity of a breach of the rule, Off if it is not checked.
func (c *Checker) Severity(r *Rule) Severity { return c.on[r.id] }

// Profile is the profile of the Options.
func (c *Checker) Profile() Profile { return c.opt.Profile }

// Count returns how often a rule was checked, and with what result.
func (c *Checker) Count(r *Rule) *Count { return &c.stats[r.id] }

// Totals counts findings by severity.
func (c *Checker) Totals() (n [Error + 1]uint64) {
	return c.total
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

// pending is a finding that is believed only if the capture turns out not to lack packets: that is known
// after the current packet has been tracked.
type pending struct {
	f    *Finding
	c    *conn
	gaps [2]uint64 // that both sides' counters must still have
	side uint8     // bits of the sides that matter
	// until is a time that the capture must have reached.
	until int64
}

const maxPending = 4096

// report takes a finding that holds in any case.
func (c *Checker) report(f *Finding) {
	r := f.Rule.id
	sev := c.on[r]
	if sev == Off {
		return
	}
	if f.Known != "" && c.opt.Profile == Linux {
		sev = Note
	}
	f.Severity = sev
	n := &c.stats[r]
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
	c.total[sev]++
	c.emit(f)
}

// await holds a finding until the current packet has been tracked.
func (c *Checker) await(p pending) {
	if len(c.pending) >= maxPending {
		c.skip(p.f.Rule.id, Limit)
		return
	}
	c.pending = append(c.pending, p)
}

// settle decides about the findings that wait.
func (c *Checker) settle() {
	for i := range c.pending {
		p := &c.pending[i]
		lost := false
		for s := range rdma.Side(2) {
			if p.side&(1<<s) != 0 && p.c.missing(s) != p.gaps[s] {
				lost = true
			}
		}
		switch {
		case lost:
			c.skip(p.f.Rule.id, Gaps)
		case c.latest.Time < p.until:
			c.skip(p.f.Rule.id, NotAcked)
		default:
			c.report(p.f)
		}
		*p = pending{}
	}
	c.pending = c.pending[:0]
}

// Finish checks what had to wait for the end of the capture. The Decoder must have been flushed (Decoder.Run
// does).
func (c *Checker) Finish() {
	c.settle()
	for _, k := range c.sorted() {
		c.closed(k)
	}
	c.settle()
	c.unreturned()
}

// program is the name of a program with its version.
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
