package edges

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// reason is why a transaction of a part differs from the one of the whole. Each is proven
// from the packets.
type reason int

const (
	unexplained reason = iota
	same
	// nameBefore: a path is shorter, because a transaction outside of the part named a
	// directory or the file. With these names the path is equal.
	nameBefore
	// contextBefore: messages stay closed, because the Kerberos context was created
	// outside of the part. With that context they are equal.
	contextBefore
	// sentBefore: the call had been sent on another connection outside of the part, which
	// is not known in the part.
	sentBefore
	// otherTap: with two capture points, the first packets of the part are those
	// of the other one. The packets are the same, their times and numbers are not;
	// and of the first ones the two directions may be seen at different points.
	otherTap
	// pairedLate: the part does not have the connection's setup, and which two queue
	// pairs belong together was proven after the call came: it is not known which of
	// its copies was acknowledged, nor when, so that the path has no time.
	pairedLate

	// What an edge cuts in two.

	// callCut, replyCut: that message is not in the part, or not whole: no_call,
	// no_reply.
	callCut
	replyCut
	// chunkCut: call and reply are, but not all that their chunks moved:
	// incomplete.
	chunkCut
	// ackCut: only acknowledgements, refusals and repetitions are missing.
	ackCut
	// messagesCut: the part has neither message whole, so that there is nothing to
	// show.
	messagesCut
	// copyOutside: a copy of what the whole tells of packets outside of the part: the
	// other capture point's, or a repetition behind the end of the transaction.
	copyOutside
	// setupTwice: with two capture points, the part has the connection's setup at one
	// of them only, while its messages have been seen at the other before: they are
	// taken for those of two connections, and shown twice.
	setupTwice
	reasons
)

var reasonTexts = [reasons]string{
	unexplained: "unexplained", same: "equal",
	nameBefore: "name", contextBefore: "context", sentBefore: "sent before", otherTap: "other tap", pairedLate: "paired late",
	callCut: "no call", replyCut: "no reply", chunkCut: "incomplete", ackCut: "only ACKs", messagesCut: "not shown",
	copyOutside: "copy", setupTwice: "twice",
}

func (r reason) String() string { return reasonTexts[r] }

// part is a piece of a capture, from packet lo to packet hi, and what was
// decoded of it.
type part struct {
	lo, hi  uint64
	many    bool   // several capture points
	all     []*row // of the whole
	rows    []*row
	numbers numbers
	taken   map[*row]bool
	packet  func(number uint64) *capture.Packet
}

// find returns the row of the part that is of the same messages as w.
func (p *part) find(w *row) *row {
	var near *row
	for _, r := range p.rows {
		if r.xid != w.xid || p.taken[r] {
			continue
		}
		if r.first == w.first {
			return r
		}
		if near == nil && (overlap(r.call, w.call) || overlap(r.reply, w.reply)) {
			near = r
		}
	}
	return near
}

// copyOf returns a row with the messages of w, captured elsewhere.
func (p *part) copyOf(w *row) *row {
	for _, r := range p.rows {
		if r.xid == w.xid && !p.taken[r] && p.copied(r.call, w.call) && p.copied(r.reply, w.reply) {
			return r
		}
	}
	return nil
}

// judgeSurplus explains a row without a transaction in the whole.
func (p *part) judgeSurplus(r *row) reason {
	why := unexplained
	for _, w := range p.all {
		if w.xid != r.xid || len(r.call) > 0 && !p.copied(r.call, w.call) || len(r.reply) > 0 && !p.copied(r.reply, w.reply) {
			continue
		}
		if w.low < p.lo || w.high > p.hi {
			return copyOutside
		}
		if p.packet(r.first).Tap != p.packet(w.first).Tap {
			why = setupTwice
		}
	}
	return why
}

// copied reports whether packets with these numbers carry the same payload.
func (p *part) copied(a, b []uint64) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	for i := range a {
		if !bytes.Equal(payload(p.packet(a[i])), payload(p.packet(b[i]))) {
			return false
		}
	}
	return true
}

func overlap(a, b []uint64) bool {
	return len(a) > 0 && len(b) > 0 && a[0] <= b[1] && b[0] <= a[1]
}

// ofTap has the fields that depend on where a packet was captured.
var ofTap = map[string]bool{
	"time": true, "call_frame": true, "reply_frame": true, "latency_ns": true, "connection": true, "retransmits": true, "path": true, "app_latency": true,
}

// judge reports the outcome of a transaction of the whole in the part. r is nil if the part
// does not have it; differing has the fields that differ without a reason.
func (p *part) judge(w *row) (why reason, r *row, unexplainedFields []string) {
	inside := w.low >= p.lo && w.high <= p.hi
	r = p.find(w)
	if r == nil {
		r = p.copyOf(w)
	}
	if r != nil {
		p.taken[r] = true
	}
	if inside {
		return p.judgeWhole(w, r)
	}
	return p.judgeCut(w, r)
}

func (p *part) judgeWhole(w, r *row) (reason, *row, []string) {
	if r == nil {
		return unexplained, nil, nil
	}
	diff := differing(w.fields, p.numbers.renumbered(r.fields))
	if len(diff) == 0 {
		return same, r, nil
	}
	remembered := p.numbers.renumbered(r.remembered)
	rest := differing(w.fields, remembered)
	if r.fields["path"] == nil && len(r.call) > 0 && r.call[0] < p.proof(r.conn) {
		isPath := func(f string) bool { return f == "path" }
		diff, rest = slices.DeleteFunc(diff, isPath), slices.DeleteFunc(rest, isPath)
	}
	switch {
	case len(diff) == 0:
		return pairedLate, r, nil
	case len(rest) == 0 && slices.Equal(diff, []string{"file"}):
		return nameBefore, r, nil
	case len(rest) == 0:
		return contextBefore, r, nil
	case onlySending(rest) && p.sentBefore(w, remembered):
		return sentBefore, r, nil
	case !slices.ContainsFunc(rest, func(f string) bool { return f != "call_frame" && f != "latency_ns" }) && p.pairedLate(w, r):
		return pairedLate, r, nil
	case p.many && slices.Equal(rest, []string{"file"}) && equalButPath(w.fields, remembered):
		return nameBefore, r, nil // named by a transaction that is shown at the other point
	case p.many && r.state == transaction.NoCall && p.copied(r.reply, w.reply) && w.reply[0] < p.proof(r.conn):
		return otherTap, r, nil
	case p.elsewhere(w, r) && (!slices.ContainsFunc(rest, func(f string) bool { return !ofTap[f] && (f != "file" || !equalButPath(w.fields, remembered)) })):
		return otherTap, r, nil
	}
	return unexplained, r, rest
}

// ofSending are the fields that say where and when a call was sent first.
var ofSending = map[string]bool{"notes": true, "note_codes": true, "first_sent": true, "app_latency": true}

func onlySending(fields []string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return !ofSending[f] })
}

// elsewhere reports whether r was captured at another point than w.
func (p *part) elsewhere(w, r *row) bool { return p.packet(r.first).Tap != p.packet(w.first).Tap }

var path = regexp.MustCompile(`,?"path":"[^"]*"`)

func equalButPath(a, b fields) bool {
	return bytes.Equal(path.ReplaceAll(a["file"], nil), path.ReplaceAll(b["file"], nil))
}

// lacks reports whether something of w is not in the part: a packet that brought
// something, of which no copy is in the part.
func (p *part) lacks(w *row) bool {
	outside := func(k *transaction.Packet) bool { return k.Ref.Number < p.lo || k.Ref.Number > p.hi }
	for i := range w.packets {
		k := &w.packets[i]
		if !outside(k) || !carries(k) {
			continue
		}
		if !slices.ContainsFunc(w.packets, func(o transaction.Packet) bool {
			return !outside(&o) && o.Role == k.Role && o.From == k.From && o.Header.Kind == rdma.HeaderBTH && o.Header.PSN == k.Header.PSN
		}) {
			return true
		}
	}
	return false
}

// proof is the packet that proves in the part that the two queue pairs of a
// connection belong together: the first reply whose call is there.
func (p *part) proof(conn int) uint64 {
	n := uint64(math.MaxUint64)
	for _, o := range p.rows {
		if o.conn == conn && len(o.call) > 0 && len(o.reply) > 0 {
			n = min(n, o.reply[0])
		}
	}
	return n
}

// pairedLate reports whether an acknowledgement of the call of w came before
// it was known that the two queue pairs of r belong together.
func (p *part) pairedLate(w, r *row) bool {
	proof := p.proof(r.conn)
	return slices.ContainsFunc(w.packets, func(k transaction.Packet) bool { return k.AcksCall && k.Ref.Number < proof })
}

var (
	sentAgain     = regexp.MustCompile(`,?"XID sent again after reconnect: first on connection \d+"`)
	sentAgainCode = regexp.MustCompile(`,?"` + transaction.ResentFrom.Code() + `"`)
)

// sentBefore reports whether the notes of w differ only in where its call was sent
// first, and that is outside of the part.
func (p *part) sentBefore(w *row, f fields) bool {
	found := sentAgain.Find(w.fields["notes"])
	if found == nil || !bytes.Equal(sentAgain.ReplaceAll(w.fields["notes"], nil), sentAgain.ReplaceAll(f["notes"], nil)) ||
		!bytes.Equal(sentAgainCode.ReplaceAll(w.fields["note_codes"], nil), sentAgainCode.ReplaceAll(f["note_codes"], nil)) {
		return false
	}
	for _, o := range p.all {
		if o.xid == w.xid && bytes.HasSuffix(bytes.TrimSuffix(found, []byte(`"`)), fmt.Appendf(nil, " %d", o.conn)) {
			return !whole(o.call, p.lo, p.hi)
		}
	}
	return false
}

// judgeCut asks whether what is shown of a transaction follows from what is
// there: nothing is complete of which something is missing, nothing vanishes of
// which a message is there.
func (p *part) judgeCut(w, r *row) (reason, *row, []string) {
	call, reply := whole(w.call, p.lo, p.hi), whole(w.reply, p.lo, p.hi)
	if r == nil {
		if call || reply {
			return unexplained, nil, nil
		}
		return messagesCut, nil, nil
	}
	missing := p.lacks(w)
	switch r.state {
	case transaction.NoCall:
		if call {
			return unexplained, r, []string{"state"}
		}
		return callCut, r, nil
	case transaction.NoReply:
		if reply {
			return unexplained, r, []string{"state"}
		}
		return replyCut, r, nil
	case transaction.Incomplete:
		if !missing && w.state != transaction.Incomplete {
			return unexplained, r, []string{"state"}
		}
		return chunkCut, r, nil
	}
	if missing && p.elsewhere(w, r) && p.copied(r.call, w.call) && p.copied(r.reply, w.reply) {
		return copyOutside, r, nil
	}
	if missing {
		return unexplained, r, []string{"state"}
	}
	return ackCut, r, nil
}
