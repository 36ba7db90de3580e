package latency

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// ChunkUse is what the chunks of one kind offered, and how much of it was used.
type ChunkUse struct {
	Messages uint64 `json:"messages"` // calls with such chunks
	Chunks   uint64 `json:"chunks"`
	Segments uint64 `json:"segments"`
	Offered  uint64 `json:"offered_bytes"`
	Used     uint64 `json:"used_bytes"`
	Wasted   uint64 `json:"wasted_bytes"` // offered but not used
}

// counters are all counts.
func (c *ChunkUse) counters() []*uint64 {
	return []*uint64{&c.Messages, &c.Chunks, &c.Segments, &c.Offered, &c.Used, &c.Wasted}
}

func (c *ChunkUse) chunk(segments int, offered, used uint64) {
	c.Chunks++
	c.Segments += uint64(segments)
	c.Offered += offered
	c.Used += used
	if used < offered {
		c.Wasted += offered - used
	}
}

// ChunkEconomy is how the data of the complete RDMA transactions of a group was transferred.
type ChunkEconomy struct {
	Transactions  uint64   `json:"transactions"`   // complete transactions over RDMA; all other fields count only those
	InlineCalls   uint64   `json:"inline_calls"`   // calls without Read chunks
	InlineReplies uint64   `json:"inline_replies"` // replies that used no chunk
	SendBytes     uint64   `json:"send_bytes"`     // of the Sends of calls and replies
	Read          ChunkUse `json:"read"`
	PositionZero  ChunkUse `json:"position_zero"`
	Write         ChunkUse `json:"write"`
	Reply         ChunkUse `json:"reply"`
	// Operations are the RDMA Reads and Writes that moved the chunks.
	Reads  uint64 `json:"rdma_reads"`
	Writes uint64 `json:"rdma_writes"`
	// ReadReplies have Read chunks: the requester reads them, and sends RDMA_DONE (the Read-Read model, which RFC 8166 does not have).
	ReadReplies uint64 `json:"read_replies"`
}

// counters are all counts.
func (e *ChunkEconomy) counters() []*uint64 {
	return slices.Concat(
		[]*uint64{&e.Transactions, &e.InlineCalls, &e.InlineReplies, &e.SendBytes, &e.Reads, &e.Writes, &e.ReadReplies},
		e.Read.counters(), e.PositionZero.counters(), e.Write.counters(), e.Reply.counters(),
	)
}

func (e *ChunkEconomy) merge(o *ChunkEconomy) (overflow bool) {
	return saturatedAll(e.counters(), o.counters())
}

// Inline is the effect of a different inline threshold. It assumes that a transport header without chunks
// takes 28 bytes, and that the requester knows the length of the reply. A real requester must assume the
// longest possible reply, so it offers chunks more often. Bytes count whole RPC messages including XDR
// padding.
type Inline struct {
	Threshold uint32 `json:"threshold"` // size of one Send in bytes, the same in both directions
	Calls     uint64 `json:"calls"`     // messages that fit, whether or not they used chunks
	Replies   uint64 `json:"replies"`
	Both      uint64 `json:"both"` // transactions whose call and reply both fit
	// FreedCalls and FreedReplies used chunks and would no longer need them; Copied are the bytes that would
	// be copied instead of placed, and Saved the RDMA operations that would be avoided.
	FreedCalls   uint64 `json:"freed_calls"`
	FreedReplies uint64 `json:"freed_replies"`
	Copied       uint64 `json:"copied_bytes"`
	Saved        uint64 `json:"saved_operations"`
	// NewCalls and NewReplies were inline and would need a chunk.
	NewCalls   uint64 `json:"new_calls"`
	NewReplies uint64 `json:"new_replies"`
	// If the threshold were a minimum chunk size instead: SmallItems are shorter data items in Read and Write chunks, which would be copied,
	// SmallBytes all their bytes, and SmallSaved the RDMA operations of messages without a longer item, which would be avoided.
	SmallItems uint64 `json:"small_items"`
	SmallBytes uint64 `json:"small_bytes"`
	SmallSaved uint64 `json:"small_saved_operations"`
}

// counters are all counts.
func (x *Inline) counters() []*uint64 {
	return []*uint64{
		&x.Calls, &x.Replies, &x.Both, &x.FreedCalls, &x.FreedReplies, &x.Copied, &x.Saved, &x.NewCalls, &x.NewReplies, &x.SmallItems, &x.SmallBytes, &x.SmallSaved,
	}
}

func (x *Inline) merge(o *Inline) (overflow bool) { return saturatedAll(x.counters(), o.counters()) }

// items are the lengths of the data items that the chunks of a message hold.
type items struct {
	length [4]uint64
	n      int
	whole  bool // a chunk holds the message itself, or there are more items
}

func (l *items) add(length uint64) {
	switch {
	case length == 0:
	case l.n == len(l.length):
		l.whole = true
	default:
		l.length[l.n] = length
		l.n++
	}
}

// small counts the items that a minimum chunk size would leave in the message; operations moved all of them.
func (x *Inline) small(size uint32, l *items, operations uint64) {
	longer := l.whole
	for _, n := range l.length[:l.n] {
		if n >= uint64(size) {
			longer = true
			continue
		}
		x.SmallItems++
		x.SmallBytes += n
	}
	if !longer && l.n > 0 {
		x.SmallSaved += operations
	}
}

// plainHeader is the size of a version 1 header without chunks: four words and
// three empty lists (RFC 8166, section 4).
const plainHeader = 28

// addChunks counts what the chunks of a complete RDMA transaction offered and used. In the read-read model,
// which later versions do not have, only the call's chunks count.
func (g *group) addChunks(tx *transaction.Transaction, inline []uint32) {
	e := &g.chunks
	call, reply := &tx.Call.Header, &tx.Reply.Header
	e.Transactions++
	e.SendBytes += uint64(tx.Call.SendBytes) + uint64(tx.Reply.SendBytes)
	e.Reads += uint64(tx.Reads)
	e.Writes += uint64(tx.Writes)
	callChunk := len(call.Reads) > 0 || len(call.Call) > 0
	if callChunk {
		e.readList(tx)
	} else {
		e.InlineCalls++
	}
	used := uint64(0)
	if len(call.Writes) > 0 {
		e.Write.Messages++
		for i, c := range call.Writes {
			n := uint64(0)
			if i < len(reply.Writes) {
				n = reply.Writes[i].Length()
			}
			used += n
			e.Write.chunk(len(c), c.Length(), n)
		}
	}
	if call.HasReply {
		n := uint64(0)
		if reply.HasReply {
			n = reply.Reply.Length()
		}
		used += n
		e.Reply.Messages++
		e.Reply.chunk(len(call.Reply), call.Reply.Length(), n)
	}
	if used == 0 {
		e.InlineReplies++
	}
	if len(reply.Reads) > 0 {
		e.ReadReplies++
	}
	if len(call.Reads)+len(call.Writes) > 0 {
		g.addItems(tx, inline)
	}
	for i, t := range inline {
		x := &g.inline[i]
		callFits := tx.Call.Bytes+plainHeader <= uint64(t)
		replyFits := tx.Reply.Bytes+plainHeader <= uint64(t)
		if callFits {
			x.Calls++
			if callChunk {
				x.FreedCalls++
				x.Copied += tx.ReadBytes
				x.Saved += uint64(tx.Reads)
			}
		} else if !callChunk {
			x.NewCalls++
		}
		if replyFits {
			x.Replies++
			if used > 0 {
				x.FreedReplies++
				x.Copied += used
				x.Saved += uint64(tx.Writes)
			}
		} else if used == 0 {
			x.NewReplies++
		}
		if callFits && replyFits {
			x.Both++
		}
	}
}

// addItems counts the data items in the chunks of a transaction that a minimum chunk size would leave in the messages.
func (g *group) addItems(tx *transaction.Transaction, inline []uint32) {
	call, reply := &tx.Call.Header, &tx.Reply.Header
	sent, returned := items{whole: len(call.Call) > 0}, items{whole: reply.HasReply && reply.Reply.Length() > 0}
	for _, c := range call.ReadChunks() {
		if c.Position == 0 && call.Version != rpcrdma.Version2 {
			sent.whole = true
		} else {
			sent.add(c.Length)
		}
	}
	for i := range min(len(call.Writes), len(reply.Writes)) {
		returned.add(reply.Writes[i].Length())
	}
	for i, t := range inline {
		g.inline[i].small(t, &sent, uint64(tx.Reads))
		g.inline[i].small(t, &returned, uint64(tx.Writes))
	}
}

// readList counts the Read chunks of a call. The number of bytes pulled is known only for the whole list;
// several chunks share it in list order.
func (e *ChunkEconomy) readList(tx *transaction.Transaction) {
	h := &tx.Call.Header
	pulled := tx.ReadBytes
	take := func(n uint64) uint64 {
		n = min(n, pulled)
		pulled -= n
		return n
	}
	zero, read := false, false
	if len(h.Call) > 0 {
		zero = true
		n := h.PositionZero().Length
		e.PositionZero.chunk(len(h.Call), n, take(n))
	}
	if len(h.Reads) > 0 {
		for _, c := range h.ReadChunks() {
			if c.Position == 0 && h.Version != rpcrdma.Version2 {
				zero = true
				e.PositionZero.chunk(len(c.Segments), c.Length, take(c.Length))
			} else {
				read = true
				e.Read.chunk(len(c.Segments), c.Length, take(c.Length))
			}
		}
	}
	if zero {
		e.PositionZero.Messages++
	}
	if read {
		e.Read.Messages++
	}
}
