package check

import (
	"fmt"
	"math"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// txCheck checks one transaction after another.
type txCheck struct {
	c  *Checker
	v  *rpc.View
	tx *transaction.Transaction
	k  *conn
	st callState

	call, reply *rpcrdma.Header // nil if not seen, or not of version 1
	act         ops.Act         // scratch
	faults      int             // of the call
	misplaced   bool            // a Read chunk cannot be where it says
	args        items
	result      items
	name        struct {
		done               bool
		program, operation string
		callKey, replyKey  string
	}
}

// Transaction checks a transaction.
func (c *Checker) Transaction(v *rpc.View) {
	tx := v.Tx
	if c.apart.on {
		c.apart.called(v)
		c.leave()
	}
	st := c.calls.Of(tx)
	if c.damaged(tx, st) {
		if st != nil {
			c.ended(tx, st)
		}
		return
	}
	if len(c.callbacks.recalls) > 0 {
		c.callbacks.returned(v)
	}
	c.callbacks.granted(v)
	c.replies.judge(v)
	if c.opt.Match == nil || c.opt.Match(v) {
		c.offloads.take(v)
	}
	if st == nil {
		if plain(tx.Connection.Fabric) && (c.opt.Match == nil || c.opt.Match(v)) {
			c.callbacks.recalled(v)
		}
		return
	}
	t := &c.transaction
	t.v, t.tx, t.st = v, tx, *st
	t.k = c.ended(tx, st)
	if c.opt.Match != nil && !c.opt.Match(v) {
		return
	}
	t.call, t.reply = t.header(&tx.Call), t.header(&tx.Reply)
	t.faults, t.misplaced = 0, false
	c.enter(t.k)
	if tx.Program >= nfs4.NFS4_CALLBACK {
		c.callbacks.recalled(v)
		c.callbacks.callback(v)
	} else {
		c.callbacks.binds(v)
	}
	t.name.done = false
	t.run()
	t.v, t.tx, t.call, t.reply = nil, nil, nil, nil
}

// damaged reports whether a packet came while a transaction was under way that is not what was sent: it may be part of it. st is nil if the call
// is not known.
func (c *Checker) damaged(tx *transaction.Transaction, st *callState) bool {
	var s *conn
	if st != nil && st.k.c.MergedInto == nil {
		s = st.k
	} else {
		s = c.conns.all[tx.Connection.Resolve()]
	}
	if s == nil || len(s.damaged) == 0 {
		return false
	}
	first, last := tx.Call.First.Number, tx.Reply.Last.Number
	if !tx.Call.Seen() {
		first = tx.Reply.First.Number
	}
	if !tx.Reply.Seen() {
		last = math.MaxUint64
	}
	return s.isDamaged(first, last)
}

// ended forgets what is remembered of a transaction that has ended, and returns its connection.
func (c *Checker) ended(tx *transaction.Transaction, st *callState) *conn {
	k := st.k
	c.calls.End(tx)
	if k.c.MergedInto != nil {
		if into := c.conns.all[k.c.Resolve()]; into != nil {
			k = into
		}
	}
	c.settled(tx, k)
	return k
}

// settled notes that a call was answered and acknowledged, if it was.
func (c *Checker) settled(tx *transaction.Transaction, k *conn) {
	if tx.Call.Seen() && tx.Times.Ack.Seen() && tx.Call.First.Number > k.settled[tx.From] {
		k.settled[tx.From] = tx.Call.First.Number
	}
}

// header is the transport header of a message, or nil if it cannot be judged.
func (t *txCheck) header(m *transaction.Message) *rpcrdma.Header {
	if !m.Seen() || !m.Transport || m.Header.Version != rpcrdma.Version1 || m.Header.Cut {
		return nil
	}
	return &m.Header
}

func (t *txCheck) run() {
	tx := t.tx
	t.versions()
	t.secured()
	if t.call != nil {
		t.checkCall()
	}
	t.lifetime()
	if tx.Reply.Seen() {
		t.checkReply()
	}
	t.model()
	t.operations()
	t.messages()
}

// requester and responder are the two sides.
func (t *txCheck) requester() rdma.Side { return t.tx.From }
func (t *txCheck) responder() rdma.Side { return t.tx.From.Other() }

// about is the message that a finding is about.
type about bool

const (
	aboutCall  about = false
	aboutReply about = true
)

// finding starts a finding about the transaction. If nobody reads it, it is not put into words.
func (t *txCheck) finding(r id, a about, deviation string, say wording) *Finding {
	tx := t.tx
	from, by, ref := t.requester(), Requester, tx.Call.Last
	if a == aboutReply {
		from, by, ref = t.responder(), Responder, tx.Reply.Last
	} else {
		t.faults++
	}
	if deviation == "" {
		m := &tx.Call
		if a == aboutReply {
			m = &tx.Reply
		}
		deviation = t.k.deviation(r, from, m.Header.PayloadLength)
	}
	if !t.c.wanted(r, t.c.severity(r, deviation)) {
		return t.c.audience.wordless(tx.Connection, r, deviation, ref, by)
	}
	n := &t.name
	if !n.done {
		n.done = true
		n.program, n.operation = program(t.v), text.Operation(t.v)
		n.callKey, n.replyKey = key(&tx.Call), key(&tx.Reply)
	}
	f := t.k.finding(r, ref, from, by)
	f.Known = deviation
	f.Connection = tx.Connection.Resolve().ID
	f.From, f.To = tx.Connection.Ends[from], tx.Connection.Ends[from.Other()]
	f.HasXID, f.XID, f.Backward = true, tx.XID, tx.Backward
	f.Program, f.Operation = n.program, n.operation
	f.CallKey, f.ReplyKey = n.callKey, n.replyKey
	f.CallFrame, f.ReplyFrame = tx.Call.Last.Number, tx.Reply.Last.Number
	f.Expected, f.Seen = say()
	f.Reaction = t.reaction(a)
	return f
}

// maxKey bounds an encoding key: lists may have thousands of segments.
const maxKey = 240

func key(m *transaction.Message) string {
	if !m.Seen() || !m.Transport {
		return ""
	}
	h := &m.Header
	n := len(h.Reads)
	for _, w := range h.Writes {
		n += 1 + len(w)
	}
	if n+len(h.Reply) > maxKey/4 {
		return fmt.Sprintf("%d read segments; %d Write chunks; %d reply segments", len(h.Reads), len(h.Writes), len(h.Reply))
	}
	return h.Key()
}

// fail reports a breach that the captured packets prove.
func (t *txCheck) fail(r id, a about, expected, seen string) {
	t.breach(r, a, func() (string, string) { return expected, seen })
}

// breach is like fail, with words that take time to make.
func (t *txCheck) breach(r id, a about, say wording) { t.known(r, a, "", say) }

// known is like breach, for a known deviation.
func (t *txCheck) known(r id, a about, deviation string, say wording) {
	if t.c.on[r] == Off {
		return
	}
	f := t.finding(r, a, deviation, say)
	if t.c.severity(r, f.Known) < Error {
		if a == aboutCall {
			t.faults--
		}
	}
	t.c.report(f)
}

// Sides for failWhole.
const (
	ofRequester = 1
	ofResponder = 2
)

// failWhole reports a breach that holds only if the capture has everything that the given sides sent since
// the call.
func (t *txCheck) failWhole(r id, a about, sides uint8, say wording) {
	if t.c.on[r] == Off {
		return
	}
	if !t.whole(r) {
		return
	}
	for side := range rdma.Side(2) {
		of := uint8(ofRequester)
		if side == t.responder() {
			of = ofResponder
		}
		if sides&of != 0 && !t.k.since(side, t.tx.Call.First.Number) {
			t.c.skip(r, MidStream)
			return
		}
	}
	p := pending{f: t.finding(r, a, "", say), c: t.k, gaps: t.st.gaps}
	if sides&ofRequester != 0 {
		p.side |= 1 << t.requester()
	}
	if sides&ofResponder != 0 {
		p.side |= 1 << t.responder()
	}
	t.c.await(p)
}

// whole reports whether everything that belongs to the transaction is known to have been captured. If not,
// the rule is not judged.
func (t *txCheck) whole(r id) bool {
	switch {
	case !t.tx.Call.Seen():
		t.c.skip(r, NoCall)
	case t.st.overtaken:
		t.c.skip(r, Reordered)
	case t.tx.OperationsLost > 0:
		t.c.skip(r, Limit)
	case t.k.many:
		t.c.skip(r, Ambiguous)
	case !t.tx.Times.Ack.Seen() && !t.ended():
		t.c.skip(r, NotAcked)
	default:
		return true
	}
	return false
}

// ended reports whether the end of the connection was captured.
func (t *txCheck) ended() bool { return t.k.over() }

// reaction is what the other side did next.
func (t *txCheck) reaction(a about) string {
	tx := t.tx
	if a == aboutReply {
		switch {
		case tx.Times.Ack.Seen():
			return "acknowledged"
		case t.ended():
			return "connection ended: " + t.k.c.Resolve().Terminated
		}
		return "not known"
	}
	switch h := &tx.Reply.Header; {
	case !tx.Reply.Seen() && t.ended():
		return "no reply; connection ended: " + t.k.c.Resolve().Terminated
	case !tx.Reply.Seen():
		return "no reply"
	case tx.Reply.Transport && h.Type == rpcrdma.TypeError:
		return "RDMA_ERROR " + t.v.Status()
	}
	if s := t.v.Status(); s != "" {
		return "replied " + s
	}
	return "replied"
}

// broken returns whether a rule is broken, and counts the rule as judged if it is not.
func (t *txCheck) broken(r id, bad bool) bool {
	if !bad {
		t.c.ok(r)
	}
	return bad
}

// versions checks the protocol version.
func (t *txCheck) versions() {
	tx, c := t.tx, t.c
	if !tx.Call.Seen() || !tx.Call.Transport {
		return
	}
	v := tx.Call.Header.Version
	fwd, known := t.k.forward()
	if known && fwd == tx.From {
		t.k.version = v + 1
	} else if known && t.k.version > 0 {
		if v+1 != t.k.version {
			t.breach(ruleBackwardVersion, aboutCall, func() (string, string) {
				return fmt.Sprintf("version %d as in forward calls", t.k.version-1), fmt.Sprintf("version %d", v)
			})
		} else {
			c.ok(ruleBackwardVersion)
		}
	}
	if v == rpcrdma.Version1 {
		c.ok(ruleVersion)
	} else {
		t.breach(ruleVersion, aboutCall, func() (string, string) {
			seen := fmt.Sprintf("version %d", v)
			if d := tx.Call.Header.Dialect; d != rpcrdma.DialectNone {
				seen += " (" + d.String() + ")"
			}
			return "version 1", seen
		})
	}
	if !tx.Reply.Seen() {
		if v != rpcrdma.Version1 {
			c.skip(ruleVersionAccepted, NoReply)
		}
		return
	}
	h := &tx.Reply.Header
	isError := h.Type == rpcrdma.TypeError
	if v != rpcrdma.Version1 {
		if isError && h.Error == rpcrdma.ErrVers || h.Version == v && !isError {
			c.ok(ruleVersionAccepted)
		} else {
			t.breach(ruleVersionAccepted, aboutReply, func() (string, string) {
				return "RDMA_ERROR with ERR_VERS", t.v.Status() + " in " + h.Type.String() + fmt.Sprintf(" of version %d", h.Version)
			})
		}
	}
	if !isError {
		return
	}
	switch {
	case h.Version != v:
		t.breach(ruleErrorFields, aboutReply, func() (string, string) {
			return fmt.Sprintf("version %d as in the call", v), fmt.Sprintf("version %d", h.Version)
		})
	case h.Error == rpcrdma.ErrVers && v >= h.Low && v <= h.High:
		t.breach(ruleErrorFields, aboutReply, func() (string, string) {
			return fmt.Sprintf("a range without version %d", v), fmt.Sprintf("versions %d to %d", h.Low, h.High)
		})
	default:
		c.ok(ruleErrorFields)
	}
}

// lifetime checks that each call is sent once and answered once.
func (t *txCheck) lifetime() {
	tx, c := t.tx, t.c
	if !tx.Call.Seen() {
		t.withoutCall()
		return
	}
	reused := false
	for _, n := range tx.Notes {
		switch n.Kind {
		case transaction.XIDReused:
			reused = true
		case transaction.ResentFrom:
			t.breach(ruleResentReconnect, aboutCall, func() (string, string) { return "a reply on the first connection", n.String() })
		}
	}
	if reused {
		f := t.finding(ruleXIDReused, aboutCall, "", func() (string, string) {
			return "a new XID for each call", "the XID is used for another call before the reply"
		})
		p := pending{f: f, c: t.k, gaps: t.st.gaps, side: 3}
		switch {
		case c.on[ruleXIDReused] == Off:
		case t.k.many:
			c.skip(ruleXIDReused, Ambiguous)
		default:
			c.await(p)
		}
	} else {
		c.ok(ruleXIDReused)
	}
	if t.st.again != 0 {
		if c.on[ruleResentSame] != Off {
			c.report(t.finding(ruleResentSame, aboutCall, "", func() (string, string) {
				return "one copy on each connection", fmt.Sprintf("the call again in frame %d", t.st.again)
			}))
		}
	} else {
		c.ok(ruleResentSame)
	}
	switch {
	case tx.Reply.Seen():
		c.ok(ruleUnanswered)
	case reused:
	case !t.ended():
		c.skip(ruleUnanswered, NotAcked)
	case t.k.misses() != [2]uint64{}:
		c.skip(ruleUnanswered, Gaps)
	default:
		t.failWhole(ruleUnanswered, aboutCall, ofResponder, func() (string, string) { return "a reply", t.unansweredFacts() })
	}
	t.countForm()
	switch {
	case t.st.twice == nil:
		if t.call != nil {
			c.ok(ruleHandleOpen)
		}
	case c.on[ruleHandleOpen] == Off:
	default:
		why, ok := t.k.whole(t.responder(), tx.Call.First.Time)
		if !ok {
			c.skip(ruleHandleOpen, why)
			break
		}
		f := t.finding(ruleHandleOpen, aboutCall, "", func() (string, string) { return t.st.twice.Expected, t.st.twice.Seen })
		c.await(pending{f: f, c: t.k, gaps: t.st.gaps, side: 3})
	}
}

// withoutCall checks a reply whose call was not seen.
func (t *txCheck) withoutCall() {
	tx, c := t.tx, t.c
	if c.unmatched.refused(t.k, tx) {
		return
	}
	if tx.Reply.Header.Type != rpcrdma.TypeError || t.k.role(t.responder()) != Requester {
		return
	}
	if why, ok := t.k.whole(t.requester(), tx.Reply.First.Time); !ok {
		c.skip(ruleErrorFromRequester, why)
		return
	}
	if c.on[ruleErrorFromRequester] == Off {
		return
	}
	f := t.finding(ruleErrorFromRequester, aboutReply, "", func() (string, string) {
		return "RDMA_ERROR from responders only", "RDMA_ERROR " + t.v.Status()
	})
	f.By = Requester
	c.await(pending{f: f, c: t.k, gaps: t.st.gaps, side: 3})
}

// model checks the read-read model.
func (t *txCheck) model() {
	tx, c := t.tx, t.c
	if !tx.Reply.Seen() || len(tx.Reply.Header.Reads) == 0 || tx.Reply.Header.Cut {
		return
	}
	last := tx.Reply.Last.Time
	for i := range tx.Operations {
		if o := &tx.Operations[i]; o.From == tx.From {
			last = max(last, o.Last.Time)
		}
	}
	if !tx.Done.Seen() {
		until := last + doneWait
		if t.ended() {
			until = last
		}
		t.failDone(ruleDoneLost, until, func() string { return "none" })
		return
	}
	c.ok(ruleDoneLost)
	held := time.Duration(tx.Done.Time - tx.Reply.Last.Time)
	if late := time.Duration(tx.Done.Time - last); late > time.Second {
		t.failDone(ruleDoneLate, last, func() string { return fmt.Sprintf("%v later; the buffers were held for %v", late, held) })
	} else {
		c.ok(ruleDoneLate)
	}
}

// doneWait is how long RDMA_DONE is waited for, in nanoseconds.
const doneWait = 2e9

// failDone reports a finding about what the requester sent after the reply, provided that the capture
// continues until a certain time.
func (t *txCheck) failDone(r id, until int64, seen func() string) {
	if t.c.on[r] == Off {
		return
	}
	if t.k.many {
		t.c.skip(r, Ambiguous)
		return
	}
	f := t.finding(r, aboutCall, "", func() (string, string) { return "RDMA_DONE after the last Read", seen() })
	t.faults--
	f.Ref = t.tx.Reply.Last
	if t.tx.Done.Seen() {
		f.Ref = t.tx.Done
	}
	t.c.await(pending{f: f, c: t.k, gaps: t.st.gaps, side: 1 << t.requester(), until: until})
}

// messages checks RPC messages that were moved by RDMA.
func (t *txCheck) messages() {
	t.message(&t.tx.Call, t.call, aboutCall)
	if t.reply != nil && t.reply.Type == rpcrdma.TypeNoMsg {
		t.message(&t.tx.Reply, t.reply, aboutReply)
	}
}

func (t *txCheck) message(m *transaction.Message, h *rpcrdma.Header, a about) {
	if h == nil || h.Inline() || h.Type == rpcrdma.TypeError || m.PayloadLength < 8 {
		return
	}
	p := m.Payload
	if len(p) < 8 {
		t.c.skip(ruleXIDMismatch, Gaps)
		t.c.skip(ruleHeaderInRDMA, Gaps)
		return
	}
	if be32(p) != h.XID {
		t.breach(ruleXIDMismatch, a, func() (string, string) {
			return fmt.Sprintf("XID 0x%08x", h.XID), fmt.Sprintf("0x%08x in the message", be32(p))
		})
		return
	}
	t.c.ok(ruleXIDMismatch)
	// An RPC reply may look like a transport header: its XID, then REPLY in place of the version, zeros, and
	// any value that equals the XID. A transport header never looks like an RPC message, since it grants
	// credits where a reply has MSG_ACCEPTED.
	bad := !oncrpc.Plausible(p, m.PayloadLength) &&
		rpcrdma.Plausible(p, m.PayloadLength) && rpcrdma.Type(be32(p[12:])) == rpcrdma.TypeMsg
	if t.broken(ruleHeaderInRDMA, bad) {
		t.fail(ruleHeaderInRDMA, a, "the RPC message at the beginning of the chunk", "a transport header")
	}
}
