package transaction

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

const (
	// keepBuffer is how large a buffer may be to be kept for the next
	// transaction.
	keepBuffer = 128 << 10
	// keepHeader is the size of a transport header whose lists may be kept.
	keepHeader = 2 << 10
	// Bounds of the memory of ended transactions that is kept for others.
	maxFree      = 4096
	maxFreeBytes = 8 << 20

	segmentSize   = int(unsafe.Sizeof(segment{}))
	operationSize = int(unsafe.Sizeof(Operation{}))
	spanSize      = int(unsafe.Sizeof(span{}))
	troubleSize   = int(unsafe.Sizeof(Trouble{}))
	packetSize    = int(unsafe.Sizeof(Packet{}))
	structSize    = int(unsafe.Sizeof(Transaction{}))
)

// take returns an unused transaction.
func (t *Tracker) take() *Transaction {
	if n := len(t.free); n > 0 {
		tx := t.free[n-1]
		t.free[n-1] = nil
		t.free = t.free[:n-1]
		t.freeBytes -= tx.size + structSize
		t.bytes += tx.size
		tx.empty = false
		return tx
	}
	tx := new(Transaction)
	tx.callTag = sendTag{tx, false}
	tx.replyTag = sendTag{tx, true}
	return tx
}

// grew notes that a transaction holds n bytes more.
func (t *Tracker) grew(tx *Transaction, n int) {
	tx.size += n
	t.bytes += n
	if tx.finished {
		t.heldBytes += n
	}
}

// room makes room for n bytes of tx: by emitting what has ended, if there is
// much of it; then by giving up the oldest calls, if a small message is at
// stake. It returns false if there is none.
func (t *Tracker) room(tx *Transaction, n int) bool {
	if t.bytes+n <= t.opt.HeldBytes {
		return true
	}
	if t.heldBytes > t.opt.HeldBytes/8 {
		t.release()
	}
	if n <= headOnly {
		for t.bytes+n > t.opt.HeldBytes {
			if !t.evict(tx, "given up: open calls hold too much memory") {
				break
			}
			if t.heldBytes > t.opt.HeldBytes/8 {
				t.release()
			}
		}
	}
	return t.bytes+n <= t.opt.HeldBytes
}

// recycle keeps a transaction's memory for another one.
func (t *Tracker) recycle(tx *Transaction) {
	if !tx.empty {
		tx.Release()
	}
	if len(t.free) >= maxFree || t.freeBytes+tx.size+structSize > maxFreeBytes {
		return
	}
	t.freeBytes += tx.size + structSize
	t.free = append(t.free, tx)
}

// Release empties a transaction that was emitted with Options.Detach. The
// consumer may call it before Tracker.Recycle is called, on its own goroutine:
// what it has looked at is at hand there.
func (tx *Transaction) Release() {
	tx.gen = 0 // tags that still point here are stale
	tx.empty = true
	if cap(tx.segments) > 256 {
		tx.segments = nil
	}
	if cap(tx.served) > 256 {
		tx.served = nil
	}
	if cap(tx.Operations) > 1024 {
		tx.Operations = nil
	}
	if cap(tx.Packets) > 1024 {
		tx.Packets = nil
	}
	if cap(tx.chunkData) > 16 {
		tx.chunkData = nil
	}
	// Field by field: assigning the whole struct costs more than all the rest.
	// TestRecycled makes sure that none is forgotten.
	tx.Connection, tx.From, tx.Backward = nil, 0, false
	tx.XID, tx.Program, tx.Version, tx.Procedure, tx.Named = 0, 0, 0, 0, false
	tx.Times = Timeline{}
	tx.Operations, tx.OperationsLost = tx.Operations[:0], 0
	tx.Reads, tx.Writes, tx.ReadBytes, tx.WriteBytes = 0, 0, 0, 0
	tx.Retransmits, tx.ReadsByRequester = 0, 0
	tx.Troubles, tx.TroublesLost = tx.Troubles[:0], 0
	tx.Done = rdma.Ref{}
	tx.Packets, tx.PacketsLost = tx.Packets[:0], 0
	tx.serial, tx.untraced = 0, false
	tx.State = Complete
	clear(tx.Notes)
	tx.Notes = tx.Notes[:0]
	tx.measured = len(tx.segments) == 0 && len(tx.served) == 0 && tx.measured
	tx.segments, tx.served = tx.segments[:0], tx.served[:0]
	tx.replied, tx.acked, tx.callAcked, tx.finished = false, false, false, false
	tx.origin, tx.waitingUntil, tx.waiting = 0, 0, false
	tx.prev, tx.next = nil, nil
	tx.Call.recycle()
	tx.Reply.recycle()
	if len(tx.chunkData) > 0 {
		chunks := tx.chunkData[:cap(tx.chunkData)]
		for i := range chunks {
			chunks[i].buf.reset(keepBuffer)
		}
		tx.chunkData = tx.chunkData[:0]
	}
	tx.size = tx.owned()
}

// recycle empties a message and keeps its memory.
func (m *Message) recycle() {
	if m.Header.Length > keepHeader {
		m.Header = rpcrdma.Header{}
	} else if m.Transport {
		m.Header.Reset()
	}
	m.Transport, m.Cut = false, false
	m.First, m.Last, m.original = rdma.Ref{}, rdma.Ref{}, rdma.Ref{}
	m.stamp, m.againStamp = rdma.Stamp{}, rdma.Stamp{}
	m.Packets, m.SendBytes = 0, 0
	m.Payload, m.PayloadLength, m.Bytes = nil, 0, 0
	m.Invalidates, m.Handle = false, 0
	m.raw = m.raw[:0]
	if cap(m.raw) > keepBuffer {
		m.raw = nil
	}
	m.long.reset(keepBuffer)
}

// owned is how much memory hangs on an unused transaction, but for the lists
// of its headers.
func (t *Transaction) owned() int {
	n := cap(t.Call.raw) + cap(t.Reply.raw) + t.Call.long.owned() + t.Reply.long.owned() +
		cap(t.Operations)*operationSize + cap(t.Troubles)*troubleSize + cap(t.Packets)*packetSize + (cap(t.segments)+cap(t.served))*segmentSize
	if !t.measured {
		t.measured, t.spans = true, 0
		for _, list := range [...][]segment{t.segments, t.served} {
			list = list[:cap(list)]
			for i := range list {
				t.spans += (cap(list[i].cover.spans) + cap(list[i].asked.spans)) * spanSize
			}
		}
	}
	n += t.spans
	chunks := t.chunkData[:cap(t.chunkData)]
	for i := range chunks {
		n += chunks[i].buf.owned()
	}
	return n
}
