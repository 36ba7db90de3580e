package transaction

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// offer registers the memory that a call offers.
func (k *chunks) offer(tx *Transaction) {
	h := &tx.Call.Header
	if h.Plain() {
		return
	}
	n := len(h.Reads) + len(h.Call) + len(h.Reply)
	for _, c := range h.Writes {
		n += len(c)
	}
	if n == 0 {
		return
	}
	if n > k.opt.Segments {
		tx.note(SegmentsLimit)
		n = k.opt.Segments
	}
	if cap(tx.segments) < n {
		tx.segments = make([]segment, 0, max(n, 8))
		k.storage.grew(tx, cap(tx.segments)*segmentSize)
	}
	owner := k.halves.of(tx.Connection, tx.From)
	o := offering{tx: tx, mem: &owner.memory, left: n, keep: k.opt.KeepData}
	if h.Version == rpcrdma.Version2 {
		o.reads(h.Call, -1)
	}
	for ci, c := range h.ReadChunks() {
		if c.Position == 0 && h.Version != rpcrdma.Version2 {
			ci = -1
		}
		o.reads(c.Segments, ci)
	}
	for ci, c := range h.Writes {
		o.writes(c, WriteList, ci)
	}
	o.writes(h.Reply, ReplyChunk, 0)
	k.halves.countTables(owner)
	k.storage.listed(tx) // ReadChunks has made lists, too
}

// offering registers segments.
type offering struct {
	tx   *Transaction
	mem  *segments
	left int
	keep bool
}

// reads takes the segments of a chunk of the Read list, or with chunk −1 those
// that hold the message itself.
func (o *offering) reads(list []rpcrdma.ReadSegment, chunk int) {
	base := uint64(0)
	for i := range list {
		o.add(&list[i].Segment, ReadList, chunk, i, base, o.keep || chunk < 0)
		base += uint64(list[i].Length)
	}
}

func (o *offering) writes(c rpcrdma.WriteChunk, kind ChunkKind, chunk int) {
	base := uint64(0)
	for i := range c {
		o.add(&c[i], kind, chunk, i, base, o.keep || kind == ReplyChunk)
		base += uint64(c[i].Length)
	}
}

func (o *offering) add(s *rpcrdma.Segment, kind ChunkKind, chunk, index int, base uint64, keep bool) {
	if o.left == 0 {
		return
	}
	o.left--
	tx := o.tx
	tx.segments = tx.segments[:len(tx.segments)+1]
	p := &tx.segments[len(tx.segments)-1]
	*p = segment{
		handle: s.Handle, length: s.Length, offset: s.Offset,
		tx: tx, at: int32(len(tx.segments) - 1), kind: kind, chunk: chunk, index: index, base: base, keep: keep,
		cover: coverage{spans: p.cover.spans[:0]}, asked: coverage{spans: p.asked.spans[:0]},
	}
	o.mem.add(p)
}

// serve registers the memory that a reply offers: the read-read model of the
// pre-standard protocol, in which the requester reads the result.
func (k *chunks) serve(tx *Transaction) {
	h := &tx.Reply.Header
	n := min(len(h.Reads), k.opt.Segments)
	if cap(tx.served) < n {
		tx.served = make([]segment, 0, n)
		k.storage.grew(tx, n*segmentSize)
	}
	owner := k.halves.of(tx.Connection, tx.From.Other())
	defer k.halves.countTables(owner)
	mem := &owner.memory
	for ci, c := range h.ReadChunks() {
		base := uint64(0)
		if c.Position == 0 {
			ci = -1
		}
		for i := range c.Segments {
			if len(tx.served) == n {
				return
			}
			s := &c.Segments[i]
			tx.served = tx.served[:len(tx.served)+1]
			p := &tx.served[len(tx.served)-1]
			*p = segment{
				handle: s.Handle, length: s.Length, offset: s.Offset, reply: true,
				tx: tx, at: int32(len(tx.served) - 1), kind: ReadList, chunk: ci, index: i, base: base, keep: ci < 0 || k.opt.KeepData,
				cover: coverage{spans: p.cover.spans[:0]}, asked: coverage{spans: p.asked.spans[:0]},
			}
			mem.add(p)
			base += uint64(s.Length)
		}
	}
}

// adopt attributes RDMA Writes whose call was not captured to the reply that
// names their segments.
func (k *chunks) adopt(tx *Transaction) {
	orphans := k.halves.of(tx.Connection, tx.From).orphans
	if orphans == nil {
		return
	}
	h := &tx.Reply.Header
	claim := func(s rpcrdma.Segment, kind ChunkKind, index int, base uint64) {
		for i := range orphans.list {
			o := &orphans.list[i]
			if !o.set || o.kind != rdma.Write || o.handle != s.Handle ||
				o.offset < s.Offset || o.offset-s.Offset >= uint64(s.Length) {
				continue
			}
			o.set = false
			k.storage.addOperation(tx, Operation{
				Kind: o.kind, From: o.from, Chunk: kind, Index: index, Handle: o.handle, Offset: o.offset,
				Length: o.length, Bytes: o.bytes, First: o.first, Last: o.last, Again: o.again,
			})
			tx.Writes++
			tx.WriteBytes += uint64(o.bytes)
			tx.Retransmits += o.again
			if !tx.Times.FirstPush.Seen() || o.first.Number < tx.Times.FirstPush.Number {
				tx.Times.FirstPush = o.first
			}
			if o.last.Number > tx.Times.LastPush.Number {
				tx.Times.LastPush = o.last
			}
			k.tracer.orphan(tx, o)
			if kind == ReplyChunk && len(o.data) > 0 {
				k.storage.put(tx, &tx.Reply.long, base+o.offset-s.Offset, o.data)
			}
		}
	}
	n := 0
	for ci, c := range h.Writes {
		for i := range c {
			if n++; n > k.opt.Segments {
				return
			}
			claim(c[i], WriteList, ci, 0)
		}
	}
	base := uint64(0)
	for i := range h.Reply {
		if n++; n > k.opt.Segments {
			return
		}
		claim(h.Reply[i], ReplyChunk, 0, base)
		base += uint64(h.Reply[i].Length)
	}
}

// written counts the Writes that came before the call on the memory that it
// offers.
func (k *chunks) written(tx *Transaction) {
	for i := range tx.Operations {
		o := &tx.Operations[i]
		if o.Kind != rdma.Write {
			continue
		}
		for j := range tx.segments {
			g := &tx.segments[j]
			if g.kind == ReadList || g.handle != o.Handle || !g.holds(o.Offset, o.Bytes) {
				continue
			}
			before := cap(g.cover.spans)
			from := o.Offset - g.offset
			g.cover.add(from, from+uint64(o.Bytes))
			k.storage.grew(tx, (cap(g.cover.spans)-before)*spanSize)
			break
		}
	}
}

// moveEarlier gives the operations and packets before the call of tx to the transaction of the reply before it.
func (k *chunks) moveEarlier(tx, early *Transaction) {
	first := tx.Call.First.Number
	ops := tx.Operations
	tx.Operations = tx.Operations[:0]
	tx.Times.FirstPush, tx.Times.LastPush = rdma.Ref{}, rdma.Ref{}
	for _, o := range ops {
		to := tx
		if o.First.Number < first {
			to = early
			k.storage.addOperation(early, o)
		} else {
			tx.Operations = append(tx.Operations, o)
		}
		if o.Kind != rdma.Write {
			continue
		}
		if to == early {
			tx.Writes, early.Writes = tx.Writes-1, early.Writes+1
			tx.WriteBytes -= uint64(o.Bytes)
			early.WriteBytes += uint64(o.Bytes)
		}
		if !to.Times.FirstPush.Seen() {
			to.Times.FirstPush = o.First
		}
		to.Times.LastPush = o.Last
	}
	for i := range tx.segments {
		if g := &tx.segments[i]; g.kind != ReadList {
			g.cover.spans, g.cover.bytes = g.cover.spans[:0], 0
		}
	}
	k.written(tx)
	packets := tx.Packets
	tx.Packets = tx.Packets[:0]
	for _, p := range packets {
		if p.Ref.Number < first {
			early.Packets = append(early.Packets, p)
			k.storage.grew(early, packetSize)
		} else {
			tx.Packets = append(tx.Packets, p)
		}
	}
}
