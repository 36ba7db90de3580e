package planner

import (
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// layout are the chunks of a call; nil if it had no transport header.
func layout(tx *transaction.Transaction) *plan.Layout {
	if !tx.Call.Transport {
		return nil
	}
	h := &tx.Call.Header
	l := &plan.Layout{CallSend: tx.Call.SendBytes, ReplySend: tx.Reply.SendBytes, Credits: h.Credits}
	for _, ch := range h.ReadChunks() {
		sizes := make([]uint32, len(ch.Segments))
		for i := range ch.Segments {
			sizes[i] = ch.Segments[i].Length
		}
		if ch.Position == 0 {
			l.PositionZero = sizes
		} else {
			l.Reads = append(l.Reads, sizes)
		}
	}
	for _, ch := range h.Writes {
		l.Writes = append(l.Writes, lengths(ch))
	}
	l.Reply = lengths(h.Reply)
	if tx.Reply.Transport {
		r := &tx.Reply.Header
		l.Granted = r.Credits
		for _, ch := range r.Writes {
			l.UsedWrites = append(l.UsedWrites, clamp32(ch.Length()))
		}
		l.UsedReply = clamp32(r.Reply.Length())
	}
	return l
}

func lengths(ch rpcrdma.WriteChunk) []uint32 {
	if len(ch) == 0 {
		return nil
	}
	sizes := make([]uint32, len(ch))
	for i := range ch {
		sizes[i] = ch[i].Length
	}
	return sizes
}

func clamp32(n uint64) uint32 { return uint32(min(n, 1<<32-1)) }
