package transaction

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// OpStart implements rdma.Handler.
func (t *Tracker) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) { t.chunks.start(c, op, ref) }

// OpAgain implements rdma.Handler.
func (t *Tracker) OpAgain(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) { t.chunks.again(c, op, ref) }

// OpData implements rdma.Handler.
func (t *Tracker) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	s, o := t.chunks.find(c, op, f)
	if s == nil {
		return
	}
	fresh := t.chunks.data(c, op, f, s, o)
	if s.chunk < 0 && !s.tx.disclosed {
		t.disclose(s.tx, s)
	}
	s.tx.moved(op, o, f, fresh)
}

// chunks attributes RDMA operations to the memory that messages have offered.
type chunks struct {
	opt     *Options
	stats   *Stats
	storage *storage
	halves  *halves
	entries *entries
	tracer  *tracer
	orphans uint64 // that there were
}

// start takes the beginning of an operation.
func (k *chunks) start(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	owner := k.halves.of(c, op.From.Other())
	s := owner.memory.find(op)
	if s == nil {
		if tx := owner.memory.user(op); tx != nil {
			tx.note(UsedAgain)
		}
		k.orphan(owner, op, ref)
		return
	}
	tx := s.tx
	from := op.Offset - s.offset
	before := cap(s.asked.spans)
	s.asked.add(from, min(from+uint64(op.Length), uint64(s.length)))
	k.storage.grew(tx, (cap(s.asked.spans)-before)*spanSize)
	index := k.storage.addOperation(tx, Operation{
		Kind: op.Kind, From: op.From, Chunk: s.kind, Index: s.chunk,
		Handle: op.Handle, Offset: op.Offset, Length: op.Length, First: ref, Last: ref,
	})
	op.Tag = tx.opTag(s, index)
	if !s.reaches(op.Offset, op.Length) {
		tx.note(BeyondSegment) // whether data comes or not: the peer refuses it
	}
	if op.Kind == rdma.Read && k.tracer != nil {
		k.tracer.add(tx, Packet{Ref: ref, Header: c.Header, Role: ReadRequest, From: op.From, Operation: index})
	}
	if op.Kind == rdma.Read {
		tx.Reads++
		if op.From == tx.From {
			tx.ReadsByRequester++
			return
		}
		if !tx.Times.FirstRead.Seen() {
			tx.Times.FirstRead = ref
		}
		return
	}
	tx.Writes++
	if !tx.Times.FirstPush.Seen() {
		tx.Times.FirstPush = ref
		tx.Times.LastPush = ref
	}
}

// maxOperations is how many operations of a transaction can be distinguished by
// the number in a tag.
const maxOperations = 1<<numberBits - 2

// place names a segment of the transaction: those of the reply are negative, or
// if it was turned those of the call.
func (tx *Transaction) place(s *segment) int32 {
	if s.reply != tx.turned {
		return ^s.at
	}
	return s.at
}

// segmentAt is the segment of that name, nil if there is none any more.
func (tx *Transaction) segmentAt(i int32) *segment {
	list := tx.segments
	if (i < 0) != tx.turned {
		list = tx.served
	}
	if i < 0 {
		i = ^i
	}
	if int(i) >= len(list) {
		return nil
	}
	return &list[i]
}

// find returns the segment that payload belongs to, nil if none, with the operation as far as that is listed.
func (k *chunks) find(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) (*segment, *Operation) {
	s, o := k.entries.segmentOf(op)
	if s != nil || kindOf(op.Tag) != orphanTag {
		return s, o
	}
	owner := halfOf(c, op.From.Other())
	if !k.claim(c, owner, op) {
		k.orphanData(owner, op, f)
		return nil, nil
	}
	return k.entries.segmentOf(op)
}

// data takes payload of the operation o on s. It returns how many bytes have not been seen before.
func (k *chunks) data(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment, s *segment, o *Operation) (fresh uint64) {
	tx := s.tx
	if f.Again {
		from := op.From
		if op.Kind == rdma.Read {
			from = from.Other() // of the response
		}
		k.storage.again(tx, from, f.Ref)
		if o != nil {
			o.Again++
		}
	}
	if k.tracer != nil {
		k.tracer.data(c, tx, op, f)
	}
	return k.cover(s, f.Offset, f.Length, f.Data)
}

// moved notes when payload came, and how many bytes of it are new.
func (tx *Transaction) moved(op *rdma.Op, o *Operation, f *rdma.Fragment, fresh uint64) {
	if f.Acked && fresh == 0 {
		return // nobody has waited for it
	}
	if o != nil {
		o.Bytes += uint32(fresh)
		o.Last = f.Ref
		if op.Length > o.Length {
			o.Length = op.Length // iWARP tells the length of a Write only at its end
		}
	}
	if op.Kind == rdma.Read {
		tx.ReadBytes += fresh
		if op.From == tx.From {
			tx.waitingUntil = f.Ref.Time + ackWait // RDMA_DONE comes after the last one
			if tx.Times.LastFetch.Number < f.Ref.Number {
				tx.Times.LastFetch = f.Ref
			}
		} else if tx.Times.LastRead.Number < f.Ref.Number {
			tx.Times.LastRead = f.Ref
		}
		return
	}
	tx.WriteBytes += fresh
	if tx.Times.LastPush.Number < f.Ref.Number && !tx.acked {
		tx.Times.LastPush = f.Ref
	}
}

// cover attributes bytes to s and, where they reach beyond it, to the segments
// that follow in memory. It returns how many have not been seen before.
func (k *chunks) cover(s *segment, offset uint64, length uint32, data []byte) (fresh uint64) {
	tx := s.tx
	left := uint64(length)
	for {
		if offset < s.offset || offset-s.offset > uint64(s.length) {
			tx.note(BeyondSegment)
			return fresh
		}
		from := offset - s.offset
		n := min(left, uint64(s.length)-from)
		before := cap(s.cover.spans)
		fresh += s.cover.add(from, from+n)
		if after := cap(s.cover.spans); after != before {
			k.storage.grew(tx, (after-before)*spanSize)
		}
		have := data[:min(uint64(len(data)), n)]
		if s.keep && len(have) > 0 {
			k.keep(tx, s, from, have)
		}
		if left -= n; left == 0 {
			return fresh
		}
		data = data[len(have):]
		if uint64(len(have)) < n {
			data = nil
		}
		offset += n
		next := s.next(offset)
		if next == nil {
			tx.note(BeyondSegment)
			return fresh
		}
		s = next
	}
}

// orphan remembers an operation that no call has asked for.
func (k *chunks) orphan(owner *half, op *rdma.Op, ref rdma.Ref) {
	k.stats.OrphanOps++
	if owner.orphans == nil {
		owner.orphans = new(orphans)
		k.halves.grew(owner, orphansSize)
	}
	k.orphans++
	op.Tag = owner.orphans.add(op, k.orphans, ref)
}

// claim gives a Read that came ahead of its call to that, as soon as one of its
// responses comes after it. It returns false if there is no such call.
func (k *chunks) claim(c *rdma.Connection, owner *half, op *rdma.Op) bool {
	if op.Kind != rdma.Read || owner == nil {
		return false
	}
	s := owner.memory.find(op)
	if s == nil || s.reply || s.tx.Call.First.Number < op.First.Number {
		return false
	}
	if o := owner.orphans.of(op); o != nil {
		o.set = false
	}
	k.stats.OrphanOps--
	k.start(c, op, op.First)
	return true
}

// maxOvertaken is how many packets a call may come after what it asks for.
const maxOvertaken = 64

// overtaken takes note that Read Responses came ahead of the call that offers
// the memory.
func (k *chunks) overtaken(tx *Transaction) {
	owner := k.halves.of(tx.Connection, tx.From)
	if owner.orphans == nil || len(tx.segments) == 0 {
		return
	}
	for i := range owner.orphans.list {
		o := &owner.orphans.list[i]
		if !o.set || o.kind != rdma.Read || o.bytes == 0 || o.first.Number+maxOvertaken < tx.Call.First.Number {
			continue
		}
		s := owner.memory.find(&rdma.Op{Kind: o.kind, From: o.from, Handle: o.handle, Offset: o.offset, Length: o.length})
		if s != nil && s.tx == tx {
			tx.unplaced = true
			return
		}
	}
}

func (k *chunks) orphanData(owner *half, op *rdma.Op, f *rdma.Fragment) {
	if !f.Again {
		k.stats.OrphanBytes += uint64(f.Length)
	}
	if owner == nil {
		return
	}
	if o := owner.orphans.of(op); o != nil && o.set {
		k.halves.grew(owner, o.take(op, f))
	}
}

// keep stores bytes of a chunk that are wanted.
func (k *chunks) keep(tx *Transaction, s *segment, from uint64, data []byte) {
	var b *buffer
	switch {
	case s.kind == ReplyChunk:
		b = &tx.Reply.long
	case s.reply && s.chunk < 0:
		b = &tx.Reply.long
	case s.reply:
		b = tx.chunk(ReplyReadList, s.chunk)
	case s.kind == ReadList && s.chunk < 0:
		b = &tx.Call.long
	default:
		b = tx.chunk(s.kind, s.chunk)
	}
	k.storage.put(tx, b, s.base+from, data)
}

func (tx *Transaction) chunk(kind ChunkKind, index int) *buffer {
	for i := range tx.chunkData {
		if d := &tx.chunkData[i]; d.kind == kind && d.index == index {
			return &d.buf
		}
	}
	if n := len(tx.chunkData); n < cap(tx.chunkData) {
		tx.chunkData = tx.chunkData[:n+1]
	} else {
		tx.chunkData = append(tx.chunkData, chunkData{})
	}
	d := &tx.chunkData[len(tx.chunkData)-1]
	d.kind, d.index = kind, index
	d.buf.reset(keepBuffer)
	return &d.buf
}

// Data returns the bytes of a chunk as far as they arrived without a hole:
// index counts chunks by position in the Read list, or chunks of the Write
// list. It needs Options.KeepData.
func (tx *Transaction) Data(kind ChunkKind, index int) []byte {
	for i := range tx.chunkData {
		if d := &tx.chunkData[i]; d.kind == kind && d.index == index {
			return d.buf.prefix()
		}
	}
	return nil
}

// CallData returns the bytes of the n-th chunk of the Read list that is not at
// position zero, by ascending position. It needs Options.KeepData.
func (tx *Transaction) CallData(n int) []byte {
	if c := tx.Call.Header.ReadChunks(); len(c) > 0 && c[0].Position == 0 && tx.Call.Header.Version != rpcrdma.Version2 {
		n++
	}
	return tx.Data(ReadList, n)
}

// ReplyData returns the bytes of the n-th data item of the reply that is in a
// chunk: of its Write list or, in the read-read model, of its Read list without
// the chunk at position zero. It needs Options.KeepData.
func (tx *Transaction) ReplyData(n int) []byte {
	h := &tx.Reply.Header
	if len(h.Reads) == 0 {
		return tx.Data(WriteList, n)
	}
	if c := h.ReadChunks(); c[0].Position == 0 {
		n++
	}
	return tx.Data(ReplyReadList, n)
}

// again takes a repetition of an RDMA Read Request.
func (k *chunks) again(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	s, o := k.entries.segmentOf(op)
	if s == nil {
		return
	}
	k.storage.again(s.tx, op.From, ref)
	if k.tracer != nil {
		k.tracer.add(s.tx, Packet{
			Ref: ref, Header: c.Header, Role: ReadRequest, From: op.From, Operation: number(op.Tag), Again: true,
		})
	}
	if o != nil {
		o.Again++
	}
}
