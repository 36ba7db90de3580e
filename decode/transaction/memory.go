package transaction

import "unsafe"

const (
	// keepBuffer is how large a buffer may be to be kept for the next
	// transaction.
	keepBuffer = 32 << 10
	// keepHeader is the size of a transport header whose lists may be kept.
	keepHeader = 2 << 10
	// Bounds of the memory of ended transactions that is kept for others.
	maxFree      = 4096
	maxFreeBytes = 8 << 20

	segmentSize   = int(unsafe.Sizeof(segment{}))
	operationSize = int(unsafe.Sizeof(Operation{}))
	spanSize      = int(unsafe.Sizeof(span{}))
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

// recycle readies a transaction's memory for another one.
func (t *Tracker) recycle(tx *Transaction) {
	tx.gen = 0 // tags that still point here are stale
	if len(t.free) >= maxFree || t.freeBytes >= maxFreeBytes || cap(tx.segments) > 256 {
		return
	}
	segments, served := tx.segments[:0], tx.served[:0]
	if cap(served) > 256 {
		served = nil
	}
	ops := tx.Operations[:0]
	if cap(ops) > 1024 {
		ops = nil
	}
	chunks := tx.chunkData[:0]
	if cap(chunks) > 16 {
		chunks = nil
	}
	notes := tx.Notes[:0]
	clear(tx.Notes)
	call, reply := tx.Call, tx.Reply
	callTag, replyTag := tx.callTag, tx.replyTag
	*tx = Transaction{
		segments: segments, served: served, Operations: ops, chunkData: chunks,
		callTag: callTag, replyTag: replyTag, Notes: notes,
	}
	tx.Call.recycle(&call)
	tx.Reply.recycle(&reply)
	for i := range chunks[:cap(chunks)] {
		chunks[:cap(chunks)][i].buf.reset(keepBuffer)
	}
	tx.size = tx.owned()
	if t.freeBytes+tx.size+structSize > maxFreeBytes {
		return
	}
	t.freeBytes += tx.size + structSize
	t.free = append(t.free, tx)
}

func (m *Message) recycle(old *Message) {
	if old.Header.Length <= keepHeader {
		m.Header = old.Header
		_ = m.Header.Decode(nil, 0) // empties it
	}
	m.raw = old.raw[:0]
	if cap(m.raw) > keepBuffer {
		m.raw = nil
	}
	m.long = old.long
	m.long.reset(keepBuffer)
}

// owned is how much memory hangs on an unused transaction, but for the lists
// of its headers.
func (t *Transaction) owned() int {
	n := cap(t.Call.raw) + cap(t.Reply.raw) + t.Call.long.owned() + t.Reply.long.owned() +
		cap(t.Operations)*operationSize + (cap(t.segments)+cap(t.served))*segmentSize
	for _, list := range [...][]segment{t.segments, t.served} {
		list = list[:cap(list)]
		for i := range list {
			n += cap(list[i].cover.spans) * spanSize
		}
	}
	chunks := t.chunkData[:cap(t.chunkData)]
	for i := range chunks {
		n += chunks[i].buf.owned()
	}
	return n
}
