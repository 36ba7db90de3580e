package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// checkReply checks the header of a reply.
func (t *txCheck) checkReply() {
	h, c, tx := t.reply, t.c, t.tx
	t.invalidation()
	if h == nil {
		if tx.Reply.Transport && tx.Reply.Header.Cut {
			for _, r := range [...]id{ruleNomsgReplyWithoutChunk, ruleMsgUsesReplyChunk, ruleWriteListCount, ruleReplyChunkChanged, ruleZeroGrant} {
				c.skip(r, Cut)
			}
		}
		return
	}
	t.credits()
	t.replySize()
	switch h.Type {
	case rpcrdma.TypeError:
		t.refusal()
		return
	case rpcrdma.TypeNoMsg:
		switch {
		case h.PositionZero().Length > 0:
			// In the read-read model the message waits to be read.
			c.ok(ruleNomsgWithoutChunk)
		case t.call == nil:
			c.skip(ruleNomsgReplyWithoutChunk, NoCall)
			if t.broken(ruleNomsgWithoutChunk, h.Reply.Length() == 0) {
				t.fail(ruleNomsgWithoutChunk, aboutReply, "a used Reply chunk", "RDMA_NOMSG without one")
			}
		case t.call.Reply.Length() == 0:
			t.fail(ruleNomsgReplyWithoutChunk, aboutReply, "RDMA_MSG: the call has no Reply chunk", "RDMA_NOMSG")
			return
		default:
			c.ok(ruleNomsgReplyWithoutChunk)
			if t.broken(ruleNomsgWithoutChunk, h.Reply.Length() == 0) {
				t.fail(ruleNomsgWithoutChunk, aboutReply, "a used Reply chunk", "RDMA_NOMSG without one")
			}
		}
	case rpcrdma.TypeMsg:
		switch {
		case h.Reply.Length() > 0:
			t.breach(ruleMsgUsesReplyChunk, aboutReply, func() (string, string) {
				return "a Reply chunk of length 0", fmt.Sprintf("%d bytes", h.Reply.Length())
			})
		default:
			c.ok(ruleMsgUsesReplyChunk)
		}
		if t.broken(ruleMsgWithoutMessage, h.PayloadLength == 0) {
			t.fail(ruleMsgWithoutMessage, aboutReply, "an RPC message behind the header", "nothing")
		}
		if t.used() > 0 && h.PayloadLength > 0 {
			if t.broken(rulePadInStream, h.PayloadLength&3 != 0) {
				t.breach(rulePadInStream, aboutReply, func() (string, string) {
					return "a message without the padding of its chunks", fmt.Sprintf("%d bytes inline, no multiple of 4", h.PayloadLength)
				})
			}
		}
	}
	if t.broken(ruleReplyReadList, len(h.Reads) > 0) {
		t.breach(ruleReplyReadList, aboutReply, func() (string, string) { return "an empty Read list", h.Key() })
	}
	if t.call == nil {
		if len(h.Writes) > 0 || h.HasReply {
			for _, r := range [...]id{ruleWriteListCount, ruleWriteSegmentCount, ruleWriteSegmentChanged, ruleReplyChunkChanged} {
				c.skip(r, NoCall)
			}
		}
		return
	}
	c.ok(ruleChunksRefused)
	t.returnedReply()
	t.returnedWrites()
	t.executed()
}

// executed checks that a call without a visible fault was executed.
func (t *txCheck) executed() {
	v := t.v
	switch {
	case v.Clean():
		t.c.ok(ruleCallRefused)
		return
	case v.ReplyErr != nil || v.Reply().Stat != oncrpc.Accepted:
		return
	case v.Reply().Accept != oncrpc.GarbageArgs && v.Reply().Accept != oncrpc.SystemErr:
		t.c.ok(ruleCallRefused)
		return
	}
	if t.faults > 0 {
		return
	}
	t.breach(ruleCallRefused, aboutReply, func() (string, string) {
		seen := v.Status()
		switch why, ok := t.readableArgs(); {
		case !ok:
			seen += "; the arguments were not checked: " + why.String()
		case v.ArgsErr != nil:
			seen += "; the arguments cannot be decoded here either: " + v.ArgsErr.Error()
		default:
			seen += "; the arguments can be decoded"
		}
		return "results, or an error of the program", seen
	})
}

// credits checks the grant.
func (t *txCheck) credits() {
	h, c := t.reply, t.c
	if t.broken(ruleZeroGrant, h.Credits == 0) {
		t.fail(ruleZeroGrant, aboutReply, "at least one credit", "0")
	}
	switch before := t.st.before; {
	case before == 0 || h.Credits == 0:
	case before != h.Credits:
		t.breach(ruleGrantChanged, aboutReply, func() (string, string) {
			return fmt.Sprintf("%d credits as before", before), fmt.Sprintf("%d", h.Credits)
		})
	default:
		c.ok(ruleGrantChanged)
	}
}

// replySize checks the length of the reply's Send.
func (t *txCheck) replySize() {
	h, c, tx := t.reply, t.c, t.tx
	limit, ok := t.threshold(t.responder())
	if !ok {
		c.skip(ruleReplyOverInline, NoSetup)
		if h.Type == rpcrdma.TypeNoMsg {
			c.skip(ruleReplyChunkNeedless, NoSetup)
		}
		return
	}
	over := tx.Reply.SendBytes > int(limit)
	if over && t.call != nil && t.call.Reply.Length() > 0 && h.Type == rpcrdma.TypeMsg {
		t.breach(ruleReplyChunkIgnored, aboutReply, func() (string, string) {
			return fmt.Sprintf("RDMA_NOMSG: the threshold is %d bytes", limit), fmt.Sprintf("a Send of %d bytes", tx.Reply.SendBytes)
		})
		return
	}
	if t.broken(ruleReplyOverInline, over) {
		t.breach(ruleReplyOverInline, aboutReply, func() (string, string) {
			return fmt.Sprintf("at most %d bytes", limit), fmt.Sprintf("a Send of %d bytes", tx.Reply.SendBytes)
		})
	}
	if h.Type == rpcrdma.TypeNoMsg && h.Reply.Length() > 0 {
		inline := uint64(tx.Reply.SendBytes) + h.Reply.Length()
		if inline > uint64(limit) || t.call == nil {
			c.ok(ruleReplyChunkNeedless)
			return
		}
		t.known(ruleReplyChunkNeedless, aboutReply, rules[ruleReplyChunkNeedless].Known, func() (string, string) {
			return fmt.Sprintf("RDMA_MSG: %d bytes fit into %d", inline, limit), fmt.Sprintf("RDMA_NOMSG; offered %d bytes, used %d", t.call.Reply.Length(), h.Reply.Length())
		})
	}
}

// refusal checks an RDMA_ERROR.
func (t *txCheck) refusal() {
	h := t.reply
	if h.Error != rpcrdma.ErrChunk || t.call == nil {
		return
	}
	if t.call.Type == rpcrdma.TypeMsgP {
		t.known(ruleMSGPRefused, aboutReply, rules[ruleMSGPRefused].Known, func() (string, string) {
			return "RDMA_MSGP taken for RDMA_MSG", "ERR_CHUNK"
		})
		return
	}
	if t.faults > 0 || t.tx.Backward && t.call.Key() != "0; 0; 0" {
		return
	}
	if t.roomRefused() {
		return
	}
	t.breach(ruleChunksRefused, aboutReply, func() (string, string) {
		if !t.call.HasReply {
			return "a reply", "ERR_CHUNK; no Reply chunk offered"
		}
		return "a reply", fmt.Sprintf("ERR_CHUNK; Reply chunk of %d bytes offered", t.call.Reply.Length())
	})
}

// returnedReply checks the Reply chunk of a reply.
func (t *txCheck) returnedReply() {
	h, r, c := t.call, t.reply, t.c
	switch {
	case !h.HasReply && !r.HasReply:
		return
	case h.HasReply && !r.HasReply:
		t.fail(ruleReplyChunkNotReturned, aboutReply, "the Reply chunk with lengths of 0", "none")
		return
	case !h.HasReply:
		t.breach(ruleReplyChunkChanged, aboutReply, func() (string, string) { return "no Reply chunk", units.Plural(len(r.Reply), "segment") })
		return
	case len(h.Reply) != len(r.Reply):
		t.breach(ruleReplyChunkChanged, aboutReply, func() (string, string) {
			return units.Plural(len(h.Reply), "segment"), units.Plural(len(r.Reply), "segment")
		})
		return
	}
	c.ok(ruleReplyChunkNotReturned)
	t.sameSegments(ruleReplyChunkChanged, h.Reply, r.Reply)
}

// invalidation checks Send with Invalidate.
func (t *txCheck) invalidation() {
	tx, c := t.tx, t.c
	if !tx.Reply.Invalidates {
		return
	}
	k := tx.Connection.Resolve()
	switch {
	case !tx.Call.Seen():
		c.skip(ruleForeignInvalidate, NoCall)
	case t.call == nil:
		c.skip(ruleForeignInvalidate, Cut)
	default:
		if t.broken(ruleForeignInvalidate, !offers(t.call, tx.Reply.Handle)) {
			t.breach(ruleForeignInvalidate, aboutReply, func() (string, string) {
				return "a handle of the call", fmt.Sprintf("handle 0x%08x", tx.Reply.Handle)
			})
		}
	}
	a, b := &k.Setup[t.requester()], &k.Setup[t.responder()]
	if !k.Declared(t.requester()) {
		c.skip(ruleInvalidateNotOffered, NoSetup)
		c.skip(ruleInvalidateUndeclared, NoSetup)
		return
	}
	if !a.Private.RemoteInvalidate {
		t.breach(ruleInvalidateNotOffered, aboutReply, func() (string, string) {
			return "a plain Send: the requester has not set the R flag", fmt.Sprintf("Send with Invalidate of handle 0x%08x", tx.Reply.Handle)
		})
		return
	}
	c.ok(ruleInvalidateNotOffered)
	if !k.Declared(t.responder()) {
		c.skip(ruleInvalidateUndeclared, NoSetup)
		return
	}
	if !b.Private.RemoteInvalidate {
		t.known(ruleInvalidateUndeclared, aboutReply, rules[ruleInvalidateUndeclared].Known, func() (string, string) {
			return "the R flag in the private data of both sides", fmt.Sprintf("Send with Invalidate of handle 0x%08x, R flag of the responder clear", tx.Reply.Handle)
		})
	} else {
		c.ok(ruleInvalidateUndeclared)
	}
}

// offers reports whether a call offers a handle.
func offers(h *rpcrdma.Header, handle uint32) bool {
	for i := range h.Reads {
		if h.Reads[i].Handle == handle {
			return true
		}
	}
	for _, w := range h.Writes {
		for i := range w {
			if w[i].Handle == handle {
				return true
			}
		}
	}
	for i := range h.Reply {
		if h.Reply[i].Handle == handle {
			return true
		}
	}
	return false
}

// moved counts the bytes that were written into a Write chunk.
func (t *txCheck) moved(chunk int) (n uint64) {
	for i := range t.tx.Operations {
		if o := &t.tx.Operations[i]; o.Kind == rdma.Write && o.Chunk == transaction.WriteList && o.Index == chunk {
			n += uint64(o.Bytes)
		}
	}
	return n
}

// operations checks the data that RDMA operations moved.
func (t *txCheck) operations() {
	tx, c := t.tx, t.c
	if t.call == nil {
		return
	}
	if len(tx.Operations) > 0 {
		t.bounds()
	}
	if t.reply == nil || t.reply.Type == rpcrdma.TypeError {
		return
	}
	if len(t.reply.Writes) == len(t.call.Writes) {
		for i, w := range t.reply.Writes {
			if w.Length() <= t.call.Writes[i].Length() && w.Length() > 0 && !t.echoed(i) {
				t.bytes(transaction.WriteList, i, w.Length())
			}
		}
	}
	if n := t.reply.Reply.Length(); n > 0 && n <= t.call.Reply.Length() {
		t.bytes(transaction.ReplyChunk, 0, n)
	}
	if len(t.call.Reads) > 0 && !t.v.StatusFailed() && t.succeeded() {
		var offered uint64
		for i := range t.call.Reads {
			offered += uint64(t.call.Reads[i].Length)
		}
		// Count what the responder requested, since packets of the responses may be missing from the capture.
		// The padding of a chunk need not be read.
		var asked uint64
		for i := range tx.Operations {
			if o := &tx.Operations[i]; o.Kind == rdma.Read && o.From != tx.From {
				asked += uint64(o.Length)
			}
		}
		pads := 3 * uint64(len(t.call.ReadChunks()))
		if asked+pads >= offered {
			c.ok(ruleReadNotPulled)
		} else {
			t.failWhole(ruleReadNotPulled, aboutReply, ofResponder, func() (string, string) {
				return units.Plural(int(offered), "byte") + " read", units.Plural(int(asked), "byte")
			})
		}
	}
}

// succeeded reports whether the call was executed, whatever the results say. A usual one was: its headers need not be decoded.
func (t *txCheck) succeeded() bool {
	return t.v.Clean() || t.v.ReplyErr == nil && t.v.Reply().Succeeded()
}

// echoed reports whether a Write chunk of the reply is an unused one that the responder returned with its
// original lengths. Another rule reports that.
func (t *txCheck) echoed(i int) bool {
	return t.moved(i) == 0 && (!t.succeeded() || i >= len(t.result.of(t.v.Result())))
}

// bytes checks that as many bytes were written to a chunk as the reply says.
func (t *txCheck) bytes(kind transaction.ChunkKind, index int, want uint64) {
	var have uint64
	for i := range t.tx.Operations {
		if o := &t.tx.Operations[i]; o.Kind == rdma.Write && o.Chunk == kind && o.Index == index {
			have += uint64(o.Bytes)
		}
	}
	if have >= want {
		t.c.ok(ruleBytesMissing)
		return
	}
	t.failWhole(ruleBytesMissing, aboutReply, ofResponder, func() (string, string) {
		return units.Plural(int(want), "byte") + " written", units.Plural(int(have), "byte")
	})
}

// bounds checks that operations stay within their segments.
func (t *txCheck) bounds() {
	h := t.call
	at := 0
	for i := range t.tx.Operations {
		o := &t.tx.Operations[i]
		if o.From == t.tx.From || o.Chunk == transaction.ReplyReadList {
			continue
		}
		over, ok := beyond(h, o, &at)
		if !ok {
			continue
		}
		if over > 0 {
			if t.c.on[ruleAccessBeyond] != Off {
				f := t.finding(ruleAccessBeyond, aboutReply, "", func() (string, string) {
					return "operations within a segment", fmt.Sprintf("%s of %d bytes, handle 0x%08x, offset 0x%x: %d bytes too many",
						kindName(o.Kind), o.Length, o.Handle, o.Offset, over)
				})
				f.Ref = o.First
				t.c.report(f)
			}
			return
		}
	}
	t.c.ok(ruleAccessBeyond)
}

// beyond returns how many bytes of an operation lie beyond its segment and the segments of the same chunk
// that follow in memory. The search starts at *at, since operations usually come in segment order.
func beyond(h *rpcrdma.Header, o *transaction.Operation, at *int) (over uint64, ok bool) {
	n := segmentCount(h, o)
	if n == 0 {
		return 0, false
	}
	offset, left := o.Offset, uint64(o.Length)
	for round := range maxNeighbours {
		found := false
		for i := range n {
			j := (*at + i) % n
			s := segmentOf(h, o, j)
			if s.Handle != o.Handle || offset-s.Offset > uint64(s.Length) || offset-s.Offset == uint64(s.Length) && left > 0 {
				continue
			}
			*at, found = j, true
			take := min(left, uint64(s.Length)-(offset-s.Offset))
			offset, left = offset+take, left-take
			break
		}
		switch {
		case !found && round == 0:
			return 0, false
		case !found || left == 0:
			return left, true
		}
	}
	return 0, false
}

// maxNeighbours bounds the segments that one operation may span.
const maxNeighbours = 64

// segmentCount is the number of segments of the list that an operation served; segmentOf is one of them.
func segmentCount(h *rpcrdma.Header, o *transaction.Operation) int {
	switch {
	case o.Chunk == transaction.ReadList:
		return len(h.Reads)
	case o.Chunk == transaction.WriteList && o.Index < len(h.Writes):
		return len(h.Writes[o.Index])
	case o.Chunk == transaction.ReplyChunk:
		return len(h.Reply)
	}
	return 0
}

func segmentOf(h *rpcrdma.Header, o *transaction.Operation, i int) *rpcrdma.Segment {
	switch o.Chunk {
	case transaction.ReadList:
		return &h.Reads[i].Segment
	case transaction.WriteList:
		return &h.Writes[o.Index][i]
	}
	return &h.Reply[i]
}
