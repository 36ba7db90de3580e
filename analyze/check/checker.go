package check

import (
	"github.com/rpcrdma/toolkit/analyze/invariant"
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
	// Fields that most messages and transactions use lie together, for the cache.
	calls transaction.States[callState]
	conns connTable
	verdicts

	// Rules by subject; transaction has the rules about whole transactions.
	fabric    fabricRules
	streams   streamRules
	unmatched unmatchedRules
	credits   creditRules
	memory    memoryRules
	callbacks callbackRules
	forms     formRules
	replies   replyRules
	offloads  offloadRules
	pauses    pauseRules
	attempts  attempts

	finishing   bool
	packet      packet // at hand
	transaction txCheck
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
		Packet: c.Packet, Headers: c.headers(), Message: c.Message, Unmatched: c.Unmatched, Operation: c.Operation,
		OpStart: c.OpStart, OpData: c.OpData, Event: c.Event, Segment: c.Segment, Merged: c.Merged, Closed: c.Closed, Attempt: c.Attempt,
	}
}

// New makes a Checker that reports to emit, which may keep the Finding.
func New(opt Options, emit func(*Finding)) *Checker {
	c := &Checker{verdicts: verdicts{opt: opt, emit: emit}}
	v := &c.verdicts
	c.conns = connTable{verdicts: v, all: make(map[*rdma.Connection]*conn)}
	c.fabric.verdicts, c.streams.verdicts, c.unmatched.verdicts, c.credits.verdicts = v, v, v, v
	c.memory = memoryRules{verdicts: v, mem: memory{newest: make(map[handle]uint64)}}
	c.callbacks = callbackRules{verdicts: v, channels: make(map[channel]*backchannel), unread: make(map[*rdma.Connection]bool)}
	c.forms = formRules{verdicts: v, pairs: make(map[pair]*forms)}
	for i := range rules {
		if opt.Rules[i] {
			c.on[i] = rules[i].Severity[opt.Profile]
		}
	}
	c.replies = replyRules{verdicts: v, invariants: invariant.New(), down: make(map[[16]byte]*down)}
	c.offloads = offloadRules{replyRules: &c.replies, open: make(map[delegation]*offload)}
	c.pauses.verdicts = v
	c.stats = &c.apart.rest
	if opt.Apart {
		c.apart.on, c.apart.byID = true, make(map[int]*own)
	}
	c.view.Unwrap = opt.Peek
	c.transaction.c = c
	return c
}

// Enabled reports whether a rule is checked.
func (c *Checker) Enabled(r *Rule) bool { return c.on[r.id] != Off }

// Severity is the severity of a breach of the rule, or Off if the rule is not checked.
func (c *Checker) Severity(r *Rule) Severity { return c.on[r.id] }

// Profile is the profile from the Options.
func (c *Checker) Profile() Profile { return c.opt.Profile }

// Count returns how often a rule was checked, and with what result. If connections are distinguished, it is complete
// after Finish.
func (c *Checker) Count(r *Rule) *Count { return c.apart.rest.of(r.id) }

// Totals counts findings by severity, like Count.
func (c *Checker) Totals() (n [Error + 1]uint64) {
	return c.apart.total
}

// settle decides about the pending findings.
func (c *Checker) settle() {
	kept := 0
	for i := range c.pending {
		p := &c.pending[i]
		if p.counter != nil && *p.counter == p.was && !c.finishing && kept < maxUntold {
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
	if c.conns.last != nil {
		c.enter(c.conns.last)
	}
}

// Finish checks what had to wait for the end of the capture. The Decoder must have been flushed (Decoder.Run
// does that).
func (c *Checker) Finish() {
	c.finishing = true
	c.settle()
	for _, k := range c.conns.sorted() {
		c.closed(k)
	}
	c.settle()
	c.leave()
	c.callbacks.unreturned()
	c.forms.oneForm()
	c.replies.channelsDown()
	c.offloads.unreported(c.packet.ref)
	c.pauses.storms()
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
