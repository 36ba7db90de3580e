package transaction

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

const (
	// keepBuffer is how large a buffer may be to be kept for the next
	// transaction.
	keepBuffer = 128 << 10
	// keepHeader is the size of a transport header whose lists may be kept.
	keepHeader = 2 << 10
	// maxFree is how many ended transactions are kept for others, within an
	// eighth of the limit.
	maxFree = 4096

	segmentSize   = int(unsafe.Sizeof(segment{}))
	operationSize = int(unsafe.Sizeof(Operation{}))
	spanSize      = int(unsafe.Sizeof(span{}))
	troubleSize   = int(unsafe.Sizeof(Trouble{}))
	packetSize    = int(unsafe.Sizeof(Packet{}))
	noteSize      = int(unsafe.Sizeof(Note{}))
	chunkDataSize = int(unsafe.Sizeof(chunkData{}))
	refusalSize   = int(unsafe.Sizeof(refusal{}))
	blameSize     = int(unsafe.Sizeof(Blame{}))
	openCallSize  = int(unsafe.Sizeof(openCall{}))
	orphansSize   = int(unsafe.Sizeof(orphans{}))
	structSize    = int(unsafe.Sizeof(Transaction{})) + entrySize
	// Entries of maps.
	handleSize = 4 + 8 + memory.MapEntry
	earlySize  = 4 + int(unsafe.Sizeof(rdma.Ref{})) + memory.MapEntry
	placeSize  = 8 + // among reconnects.live
		int(unsafe.Sizeof(hosts{})) + 8*3 + memory.MapEntry
	pastSize = 2*int(unsafe.Sizeof(pastKey{})) + int(unsafe.Sizeof(pastCall{})) + memory.MapEntry
	halfSize = int(unsafe.Sizeof(half{})+unsafe.Sizeof(conn{})) + placeSize
)

// Evict gives something up: what is kept for later, or the transactions that
// have ended and wait for an earlier one, or else the oldest open one. It
// returns false if there is nothing.
func (t *Tracker) Evict() bool {
	switch {
	case t.pool.clear():
	case t.queue.held > 0:
		t.queue.release()
	default:
		return t.evict(GivenUpMemory)
	}
	return true
}

// enforce keeps a tracker to its limit that is used by itself: as part of a
// decoder it is told by the others' accountant.
func (t *Tracker) enforce() {
	if t.alone != nil {
		t.alone.Enforce()
	}
}

// plain reports that neither message has chunks, so that the lists of their headers take what they took before. To ask
// these touches eight cache lines.
func (t *Transaction) plain() bool { return t.Call.Header.Plain() && t.Reply.Header.Plain() }

// Release empties a transaction that was emitted with Options.Detach. The
// consumer may call it before Tracker.Recycle is called, on its own goroutine:
// what it has looked at is at hand there.
func (tx *Transaction) Release() {
	tx.empty = true // gen is the tracker's: it looks at it while the consumer is here
	light := tx.light()
	if !light {
		tx.trim()
	}
	// Field by field: assigning the whole struct costs more than all the rest.
	// TestRecycled makes sure that none is forgotten.
	tx.Connection, tx.From, tx.Backward = nil, 0, false
	tx.XID, tx.Program, tx.Version, tx.Procedure, tx.Named = 0, 0, 0, 0, false
	tx.Times = Timeline{}
	tx.Blame, tx.Kernel = nil, nil
	tx.Credits, tx.Slots, tx.SlotLimit, tx.counted, tx.holes = 0, 0, 0, false, 0
	tx.InFlight, tx.Window = 0, 0
	tx.Operations, tx.OperationsLost = tx.Operations[:0], 0
	tx.Reads, tx.Writes, tx.ReadBytes, tx.WriteBytes = 0, 0, 0, 0
	tx.Retransmits, tx.ReadsByRequester = 0, 0
	tx.Troubles, tx.TroublesLost = tx.Troubles[:0], 0
	tx.Done = rdma.Ref{}
	tx.Packets, tx.PacketsLost = tx.Packets[:0], 0
	tx.serial, tx.untraced, tx.unplaced = 0, false, false
	tx.fastCall, tx.fast = false, false
	tx.disclosed, tx.assumed, tx.turned, tx.bySide, tx.late, tx.unproven = false, false, false, false, false, false
	tx.State = Complete
	clear(tx.Notes)
	tx.Notes, tx.noted = tx.Notes[:0], 0
	tx.measured = len(tx.segments) == 0 && len(tx.served) == 0 && tx.measured
	tx.segments, tx.served = tx.segments[:0], tx.served[:0]
	tx.replied, tx.acked, tx.callAcked, tx.ackMissed, tx.finished = false, false, false, false, false
	tx.callLost, tx.replyLost = DeliveryUnknown, DeliveryUnknown
	tx.origin, tx.sentFirst, tx.waitingUntil, tx.waiting = 0, 0, 0, false
	tx.prev, tx.next = nil, nil
	tx.Call.recycle()
	tx.Reply.recycle()
	if light {
		return
	}
	if len(tx.chunkData) > 0 {
		chunks := tx.chunkData[:cap(tx.chunkData)]
		for i := range chunks {
			chunks[i].buf.reset(keepBuffer)
		}
		tx.chunkData = tx.chunkData[:0]
	}
	tx.lists = tx.Call.Header.Memory() + tx.Reply.Header.Memory()
	tx.size = tx.owned()
}

// light reports that a transaction has used nothing but room for two messages, which is not to be given back: then it holds what it
// held when it began, and what was counted since.
func (tx *Transaction) light() bool {
	return tx.plain() && len(tx.segments)|len(tx.served)|len(tx.Operations)|len(tx.Packets)|len(tx.Troubles)|len(tx.Notes)|len(tx.chunkData)|
		len(tx.Call.long.b)|len(tx.Reply.long.b)|tx.noted == 0 &&
		cap(tx.Call.raw)|cap(tx.Reply.raw) <= keepBuffer && tx.measured
}

// trim gives back the lists that are longer than most.
func (tx *Transaction) trim() {
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
}

// recycle empties a message and keeps its memory.
func (m *Message) recycle() {
	if m.Header.Plain() {
		m.Header.ResetPlain()
	} else if m.Header.Length > keepHeader {
		m.Header = rpcrdma.Header{}
	} else if m.Transport {
		m.Header.Reset()
	}
	m.Transport, m.Cut, m.shared = false, false, false
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

// owned is how much memory an unused transaction takes.
func (t *Transaction) owned() int {
	n := structSize + t.lists + cap(t.Notes)*noteSize + cap(t.chunkData)*chunkDataSize + cap(t.Call.raw) + cap(t.Reply.raw) + t.Call.long.owned() + t.Reply.long.owned() +
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
	if t.blame != nil {
		n += blameSize
	}
	chunks := t.chunkData[:cap(t.chunkData)]
	for i := range chunks {
		n += chunks[i].buf.owned()
	}
	return n
}
