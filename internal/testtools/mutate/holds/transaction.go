// Package holds checks what must be true of everything decoded, however damaged the packets were. Fuzz
// targets apply it to each transaction.
package holds

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// T is what a test gives: *testing.T or *testing.B.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Transaction fails the test if a transaction contradicts itself.
func Transaction(t T, tx *transaction.Transaction) {
	t.Helper()
	if why := contradiction(tx); why != "" {
		t.Fatalf("transaction %#x at packet %d (%s): %s\n%q", tx.XID, tx.First().Number, tx.State, why, Digest(nil, tx))
	}
}

// contradiction is the first statement of a transaction that cannot be true;
// empty if there is none.
func contradiction(tx *transaction.Transaction) string {
	if tx.Connection == nil {
		return "no connection"
	}
	call, reply := &tx.Call, &tx.Reply
	switch tx.State {
	case transaction.Complete, transaction.Incomplete:
		if !call.Seen() || !reply.Seen() {
			return "call or reply is missing"
		}
	case transaction.NoReply:
		if !call.Seen() || reply.Seen() {
			return "has a reply, or no call"
		}
	case transaction.NoCall:
		if call.Seen() || !reply.Seen() {
			return "has a call, or no reply"
		}
	default:
		return "unknown state"
	}
	for i, m := range []*transaction.Message{call, reply} {
		if why := message(m); why != "" {
			return [...]string{"call: ", "reply: "}[i] + why
		}
	}
	if why := total(tx); why != "" {
		return why
	}
	if why := phases(tx); why != "" {
		return why
	}
	if why := blame(tx); why != "" {
		return why
	}
	if why := moved(tx); why != "" {
		return why
	}
	for _, n := range tx.Notes {
		if s := n.String(); !printable(s) || s == "" || n.Kind.Code() == "" {
			return fmt.Sprintf("note %d: %q", n.Kind, s)
		}
	}
	if tx.Memory() < 0 {
		return fmt.Sprintf("%d bytes of memory", tx.Memory())
	}
	return ""
}

func message(m *transaction.Message) string {
	if !m.Seen() {
		return ""
	}
	switch {
	case len(m.Payload) > m.PayloadLength:
		return fmt.Sprintf("%d bytes of payload, of %d", len(m.Payload), m.PayloadLength)
	case len(m.Raw()) > m.SendBytes:
		return fmt.Sprintf("%d bytes of a Send of %d", len(m.Raw()), m.SendBytes)
	case !m.First.Seen():
		return "has a last packet and no first one"
	case m.Packets < 1:
		return fmt.Sprintf("%d packets", m.Packets)
	case !m.Transport && (len(m.Header.Reads) > 0 || len(m.Header.Writes) > 0 || m.Header.HasReply):
		return "chunks without a transport header"
	}
	return ""
}

// blame: there is none without phases, the shares of each phase sum to it, and none
// is negative.
func blame(tx *transaction.Transaction) string {
	p, ok := tx.Phases()
	if tx.Credits < 0 {
		return fmt.Sprintf("waited %v for credits", tx.Credits)
	}
	if tx.Blame == nil {
		return ""
	}
	if !ok || !p.Divided() {
		return "time was lost, and there are no phases"
	}
	for ph := range transaction.Parts() {
		sum := time.Duration(0)
		for _, d := range tx.Blame.Shares[ph] {
			if d < 0 {
				return fmt.Sprintf("%s: %v", ph, tx.Blame.Shares[ph])
			}
			sum += d
		}
		if sum != p.Of(ph) {
			return fmt.Sprintf("shares of %s do not add up to %v: %v", ph, p.Of(ph), tx.Blame.Shares[ph])
		}
	}
	return ""
}

// lacking reports whether the chunk lists of the call were cut, or nothing was seen of what they, and those of the reply, say was moved.
func lacking(tx *transaction.Transaction) bool {
	if call := &tx.Call; call.Transport {
		var offered uint64
		for _, list := range [][]rpcrdma.ReadSegment{call.Header.Reads, call.Header.Call} {
			for _, s := range list {
				offered += uint64(s.Length)
			}
		}
		refused := tx.Reply.Transport && tx.Reply.Header.Type == rpcrdma.TypeError
		var r oncrpc.Reply
		_ = r.Decode(tx.Reply.Payload, tx.Reply.PayloadLength) // it may end behind its status
		switch r.Stat {
		case oncrpc.Accepted:
			refused = refused || r.Accept != oncrpc.Success && r.Accept <= oncrpc.SystemErr
		case oncrpc.Denied:
			refused = refused || r.Reject <= oncrpc.AuthError
		}
		if call.Header.Cut || offered > 0 && !refused && !tx.Times.LastRead.Seen() {
			return true
		}
	}
	var used uint64
	for _, c := range append([]rpcrdma.WriteChunk{tx.Reply.Header.Reply}, tx.Reply.Header.Writes...) {
		for _, s := range c {
			used += uint64(s.Length)
		}
	}
	return tx.Reply.Transport && used > 0 && !tx.Times.FirstPush.Seen()
}

// undivided: so are phases if the transaction lacks something for them, and only then. All but the total and the acknowledgement are negative.
func undivided(p *transaction.Phases, lacks bool) string {
	want := transaction.Phases{CallTransfer: -1, ArgumentPull: -1, PullWait: -1, Server: -1, ResultPush: -1, ReplyTransfer: -1, Total: p.Total, Ack: p.Ack}
	if !lacks || *p != want || p.Total < 0 || p.Ack < -1 {
		return fmt.Sprintf("lacks something is %v: phases %+v", lacks, *p)
	}
	return ""
}

// total: Took says the total of the phases, where there are any.
func total(tx *transaction.Transaction) string {
	p, ok := tx.Phases()
	if d, timed := tx.Took(); timed != ok || d != p.Total {
		return fmt.Sprintf("took %v (%v), phases %v (%v)", d, timed, p.Total, ok)
	}
	return ""
}

// phases: they are there if call and reply are and the reply is not stamped before
// the call (or with it, if it came first); the five parts sum to the total, and none
// is negative, unless the transaction lacks something for that: then all are.
func phases(tx *transaction.Transaction) string {
	p, ok := tx.Phases()
	both := tx.Call.Seen() && tx.Reply.Seen()
	took := tx.Reply.Last.Time - tx.Call.First.Time
	switch backwards := both && tx.Reply.Last.Time < tx.Call.First.Time; {
	case ok && (!both || backwards):
		return "phases without call and reply in this order"
	case !ok && both && !backwards && took != 0:
		return "no phases with call and reply"
	}
	if !ok {
		return ""
	}
	if tx.State == transaction.Complete && !p.Divided() {
		return fmt.Sprintf("complete, without phases: %+v", p)
	}
	if lacks := lacking(tx); lacks || !p.Divided() {
		return undivided(&p, lacks)
	}
	if p.CallTransfer+p.ArgumentPull+p.Server+p.ResultPush+p.ReplyTransfer != p.Total {
		return fmt.Sprintf("phases do not add up: %+v", p)
	}
	if p.CallTransfer < 0 || p.ArgumentPull < 0 || p.ResultPush < 0 || p.ReplyTransfer < 0 || p.Server < 0 ||
		p.PullWait < 0 || p.PullWait > p.ArgumentPull || p.Ack < -1 {
		return fmt.Sprintf("phases %+v", p)
	}
	return ""
}

func lengths(list []rpcrdma.Segment) (n uint64) {
	for i := range list {
		n += uint64(list[i].Length)
	}
	return n
}

// unoffered says that writes of the transaction may exceed the chunk lists of its call: they are missing, or came when the
// reply had told which memory was written.
func unoffered(n transaction.Note) bool {
	switch n.Kind {
	case transaction.HeaderCut, transaction.HeaderMalformed,
		transaction.ReplyFirst, transaction.ReplyFirstSameTime, transaction.ReplyStampedEarlier:
		return true
	}
	return false
}

// moved: what operations have moved is no more than the memory that was
// offered, and the operations listed agree with the totals.
func moved(tx *transaction.Transaction) string {
	reads, writes := offered(tx)
	switch {
	case tx.ReadBytes > reads:
		return fmt.Sprintf("%d bytes read, %d offered", tx.ReadBytes, reads)
	case tx.WriteBytes > writes:
		return fmt.Sprintf("%d bytes written, %d offered", tx.WriteBytes, writes)
	case tx.Reads < 0 || tx.Writes < 0 || tx.Retransmits < 0 || tx.ReadsByRequester > tx.Reads:
		return fmt.Sprintf("%d Reads, %d by the requester, %d Writes, %d packets again", tx.Reads, tx.ReadsByRequester, tx.Writes, tx.Retransmits)
	}
	if why := operations(tx); why != "" {
		return why
	}
	for _, c := range tx.Progress(nil) {
		if c.Moved > c.Offered || c.Asked > c.Offered {
			return fmt.Sprintf("chunk %+v", c)
		}
	}
	return ""
}

// offered is how many bytes of memory a transaction offers for Reads and for
// Writes.
func offered(tx *transaction.Transaction) (reads, writes uint64) {
	for _, m := range []*transaction.Message{&tx.Call, &tx.Reply} {
		for _, list := range [][]rpcrdma.ReadSegment{m.Header.Call, m.Header.Reads} {
			for i := range list {
				reads += uint64(list[i].Length)
			}
		}
	}
	if !tx.Call.Seen() || slices.ContainsFunc(tx.Notes, unoffered) {
		return reads, math.MaxUint64 // the reply tells only what it says was used
	}
	for _, w := range tx.Call.Header.Writes {
		writes += lengths(w)
	}
	return reads, writes + lengths(tx.Call.Header.Reply)
}

// operations: each operation listed is possible, and together they are what
// the totals say.
func operations(tx *transaction.Transaction) string {
	if len(tx.Operations)+tx.OperationsLost != tx.Reads+tx.Writes {
		return fmt.Sprintf("%d operations listed, %d lost, of %d Reads and %d Writes", len(tx.Operations), tx.OperationsLost, tx.Reads, tx.Writes)
	}
	var reads, writes uint64
	for i := range tx.Operations {
		o := &tx.Operations[i]
		read := o.Kind == rdma.Read
		if read && o.Bytes > o.Length || o.Again < 0 || !o.First.Seen() || !o.Last.Seen() || (o.Chunk == transaction.ReadList) != read {
			return fmt.Sprintf("operation %d: %+v", i, *o)
		}
		if read {
			reads += uint64(o.Bytes)
		} else {
			writes += uint64(o.Bytes)
		}
	}
	if reads > tx.ReadBytes || writes > tx.WriteBytes || tx.OperationsLost == 0 && (reads != tx.ReadBytes || writes != tx.WriteBytes) {
		return fmt.Sprintf("operations have read %d of %d bytes, written %d of %d", reads, tx.ReadBytes, writes, tx.WriteBytes)
	}
	return ""
}

func printable(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Digest appends a transaction as text, without its connection number: two ways to decode the same packets
// must give the same text. Payloads are as they are.
func Digest(dst []byte, tx *transaction.Transaction) []byte {
	word := func(s string) { dst = append(append(dst, ' '), s...) }
	num := func(name string, n int64) {
		dst = strconv.AppendInt(append(append(append(dst, ' '), name...), '='), n, 10)
	}
	flag := func(name string, v bool) {
		if v {
			word(name)
		}
	}
	for _, e := range tx.Connection.Ends {
		dst = e.Addr.AppendTo(append(dst, ' '))
		num("port", int64(e.Port))
		num("qp", int64(e.QPN))
	}
	word(tx.Connection.Fabric.String())
	num("xid", int64(tx.XID))
	num("from", int64(tx.From))
	num("program", int64(tx.Program))
	num("version", int64(tx.Version))
	num("procedure", int64(tx.Procedure))
	flag("named", tx.Named)
	flag("backward", tx.Backward)
	word(tx.State.String())
	for _, n := range tx.Notes {
		word(n.String())
	}
	for i, m := range []*transaction.Message{&tx.Call, &tx.Reply} {
		dst = append(dst, [...]string{"\n  call:", "\n  reply:"}[i]...)
		num("first", int64(m.First.Number))
		num("last", int64(m.Last.Number))
		num("packets", int64(m.Packets))
		num("sends", int64(m.SendBytes))
		num("length", int64(m.PayloadLength))
		num("bytes", int64(m.Bytes))
		num("handle", int64(m.Handle))
		num("credits", int64(m.Header.Credits))
		flag("cut", m.Cut)
		flag("invalidates", m.Invalidates)
		num("type", int64(m.Header.Type))
		num("payload", int64(len(m.Payload)))
		dst = append(append(dst, ' '), m.Payload...)
	}
	dst = append(dst, "\n "...)
	num("reads", int64(tx.Reads))
	num("read", int64(tx.ReadBytes))
	num("writes", int64(tx.Writes))
	num("written", int64(tx.WriteBytes))
	num("again", int64(tx.Retransmits))
	num("done", int64(tx.Done.Number))
	num("lost", int64(tx.OperationsLost))
	num("troubles", int64(len(tx.Troubles)))
	for i := range tx.Troubles {
		dst = fmt.Appendf(dst, " %+v", tx.Troubles[i])
	}
	if p, ok := tx.Phases(); ok {
		num("call", int64(p.CallTransfer))
		num("pull", int64(p.ArgumentPull))
		num("wait", int64(p.PullWait))
		num("server", int64(p.Server))
		num("push", int64(p.ResultPush))
		num("reply", int64(p.ReplyTransfer))
		num("ack", int64(p.Ack))
	}
	for i := range tx.Operations {
		o := &tx.Operations[i]
		dst = append(dst, "\n   "...)
		word(o.Chunk.String())
		num("kind", int64(o.Kind))
		num("from", int64(o.From))
		num("index", int64(o.Index))
		num("handle", int64(o.Handle))
		num("offset", int64(o.Offset))
		num("length", int64(o.Length))
		num("bytes", int64(o.Bytes))
		num("first", int64(o.First.Number))
		num("last", int64(o.Last.Number))
		num("again", int64(o.Again))
	}
	return append(dst, '\n')
}
