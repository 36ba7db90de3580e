package ndjson

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/digits"
)

// Transactions that move data, by RDMA or in several packets, differ in most of their numbers. Their objects are written key by key,
// where there is room for all of them: what was called, how it was framed and the file are kept as they are written.

// front is the piece of an origin: from "connection" to the key of the call's packet.
type front struct {
	origin
	text []byte
}

// framed is the piece of the headers of a call and a reply: their types and credits.
type framed struct {
	call, reply uint64 // see heading
	size        uint8
	text        [144]byte
}

const (
	noHeader      = 1 << 62 // what is kept of a message without a header
	unknownHeader = 1 << 63 // never kept
)

// A moving object needs room for its front, for its segments, and moreRoom for all else.
const (
	segmentRoom = 128
	moreRoom    = 2048
)

// moving appends the object of a transaction that ended as most do, and of which nothing was lost; false for all others. Like those of
// phases, the times that it waited are not negative.
func (e *Encoder) moving(b []byte, v *rpc.View) ([]byte, bool) {
	tx, p := v.Tx, &e.phases
	call, reply := &tx.Call, &tx.Reply
	if tx.State != transaction.Complete || tx.Retransmits|len(tx.Notes) != 0 || tx.Credits|tx.Slots < 0 ||
		tx.Blame != nil && !lossless(tx.Blame) || tx.Connection.Tunnel != nil || !v.Usual() && !legible(v) || !tx.SetPhases(p) ||
		p.CallTransfer|p.ArgumentPull|p.PullWait|p.Server|p.ResultPush|p.ReplyTransfer|p.Total < 0 {
		return b, false
	}
	k, h := e.front(v), e.frames(call, reply)
	lists := segmentsOf(call) + segmentsOf(reply)
	if k == nil || h == nil {
		return b, false
	}
	if room := len(k.text) + segmentRoom*lists + moreRoom + maxObject; cap(b)-len(b) < room {
		b = slices.Grow(b, room)
	}
	d := b[len(b):cap(b)]
	n := e.begin(d, call.First.Time)
	n += digits.Put((*[digits.Room]byte)(d[n:]), uint64(tx.XID))
	n += copy(d[n:], k.text)
	n += digits.Put((*[digits.Room]byte)(d[n:]), call.Last.Number)
	n = replyFrameKey.number(d, n, reply.Last.Number)
	*(*[len(h.text)]byte)(d[n:]) = h.text
	n = chunkLists(d, n+int(h.size), tx, lists)
	n = transfers(d, n, tx)
	n = callBytesKey.number(d, n, call.Bytes)
	n = replyBytesKey.number(d, n, reply.Bytes)
	n += copy(d[n:], `,"retransmits":0`)
	if reply.Invalidates {
		n = invalidatedKey.number(d, n, uint64(reply.Handle))
	}
	n = putPhases(d, n, p)
	n = waits(d, n, tx)
	losses, end := nothingLost, acknowledged
	if tx.Blame == nil {
		losses = unknownLost
	}
	if tx.ReplyDelivery() != transaction.Acknowledged { // what was lost is not complete
		end = unconfirmed
	}
	n += copy(d[n:], losses)
	n += copy(d[n:], end)
	n += copy(d[n:], noNotes+ofFile) - len(ofFile)
	return e.usualFile(b[:len(b)+n], (*[maxObject]byte)(d[n:]), 0, v), true
}

// front returns the front of a transaction; nil for a COMPOUND whose operations are not kept.
func (e *Encoder) front(v *rpc.View) *front {
	procedure, kind, ok := e.kind(v)
	if !ok {
		return nil
	}
	i := 2*uint(v.Tx.Connection.ID) + 5*procedure
	if v.Tx.Backward {
		i++
	}
	k := &e.fronts[i%uint(len(e.fronts))]
	if !k.is(v, kind) {
		k.set(v, kind)
		k.text = e.from(k.text[:0], v, k.status)
	}
	return k
}

// frames returns what is written of the headers; nil if one was not read as a whole, or has no type that is known.
func (e *Encoder) frames(call, reply *transaction.Message) *framed {
	a, b := heading(call), heading(reply)
	k := &e.framed[(a^b)%uint64(len(e.framed))]
	if k.call == a && k.reply == b && k.size > 0 {
		return k
	}
	if a == unknownHeader || b == unknownHeader {
		return nil
	}
	*k = framed{call: a, reply: b}
	k.size = uint8(len(framing(k.text[:0], call, reply)))
	return k
}

// heading is the type and the credits of a message that was seen.
func heading(m *transaction.Message) uint64 {
	h := &m.Header
	switch {
	case !m.Transport:
		return noHeader
	case !h.Fixed() || h.Type.String() == "":
		return unknownHeader
	}
	return uint64(h.Type)<<32 | uint64(h.Credits)
}

// segmentsOf counts the segments and the lists of a message.
func segmentsOf(m *transaction.Message) int {
	if !m.Transport || m.Header.Plain() {
		return 0
	}
	h := &m.Header
	n := 1 + 2*len(h.Reads) + len(h.Writes) + len(h.Reply)
	for _, c := range h.Writes {
		n += len(c)
	}
	return n
}

// key is what stands in front of a value. It is copied as a whole.
type key struct {
	text [32]byte
	size int
}

func newKey(s string) (k key) {
	if len(s) > len(k.text) {
		panic("ndjson: a long key")
	}
	k.size = copy(k.text[:], s)
	return k
}

// put writes a key, and returns where it ends.
func (k *key) put(d []byte, n int) int {
	*(*[len(k.text)]byte)(d[n:]) = k.text
	return n + k.size
}

// number writes a key and a number, and returns where that ends.
func (k *key) number(d []byte, n int, v uint64) int {
	n = k.put(d, n)
	return n + digits.Put((*[digits.Room]byte)(d[n:]), v)
}

var (
	replyFrameKey = newKey(replyFrame)
	callBytesKey  = newKey(`,"call_bytes":`)
	replyBytesKey = newKey(`,"reply_bytes":`)

	readsKey      = newKey(`,"rdma_reads":`)
	readBytesKey  = newKey(`,"rdma_read_bytes":`)
	writesKey     = newKey(`,"rdma_writes":`)
	writeBytesKey = newKey(`,"rdma_write_bytes":`)

	transferKey = newKey(`,"latency_ns":{"call_transfer":`)
	pullKey     = newKey(`,"argument_pull":`)
	waitKey     = newKey(`,"pull_wait":`)
	serverKey   = newKey(`,"server":`)
	pushKey     = newKey(`,"result_push":`)
	replyKey    = newKey(`,"reply_transfer":`)
	totalKey    = newKey(`,"total":`)
	ackedKey    = newKey(ackKey)

	invalidatedKey = newKey(`,"invalidated_handle":`)

	creditWaitKey = newKey(`},"credit_wait_ns":`)
	slotWaitKey   = newKey(`,"slot_wait_ns":`)

	handleKey        = newKey(`{"handle":`)
	lengthKey        = newKey(`,"length":`)
	segmentOffsetKey = newKey(`,"offset":`)
	positionKey      = newKey(`{"position":`)
	segmentsKey      = newKey(`,"segments":[`)

	readChunksKey        = newKey(`,"read_chunks":[`)
	writeChunksKey       = newKey(`,"write_chunks":[`)
	replyChunkKey        = newKey(`,"reply_chunk":[`)
	noReplyChunkKey      = newKey(`,"reply_chunk":null`)
	writtenChunksKey     = newKey(`,"written_chunks":[`)
	writtenReplyChunkKey = newKey(`,"written_reply_chunk":[`)
	nothingWrittenKey    = newKey(`,"written_reply_chunk":null`)
	replyReadChunksKey   = newKey(`,"reply_read_chunks":[`)
)

const (
	noChunks    = `,"read_chunks":[],"write_chunks":[],"reply_chunk":null,"written_chunks":[],"written_reply_chunk":null`
	noTransfers = `,"rdma_reads":0,"rdma_read_bytes":0,"rdma_writes":0,"rdma_write_bytes":0`
	unknownLost = `,"lost_ns":null`
)

// chunkLists writes what chunks does, and returns where that ends. lists is 0 if there are none.
func chunkLists(d []byte, n int, tx *transaction.Transaction, lists int) int {
	if lists == 0 {
		return n + copy(d[n:], noChunks)
	}
	call, reply := &tx.Call, &tx.Reply
	n = putReads(d, readChunksKey.put(d, n), call)
	n = putWrites(d, writeChunksKey.put(d, n), call)
	n = putReply(d, n, call, &replyChunkKey, &noReplyChunkKey)
	n = putWrites(d, writtenChunksKey.put(d, n), reply)
	n = putReply(d, n, reply, &writtenReplyChunkKey, &nothingWrittenKey)
	if reply.Transport && len(reply.Header.Reads) > 0 {
		n = putReads(d, replyReadChunksKey.put(d, n), reply)
	}
	return n
}

// putReads writes Read chunks, with the bracket behind them.
func putReads(d []byte, n int, m *transaction.Message) int {
	if m.Transport {
		for i, c := range m.Header.ReadChunks() {
			n = comma(d, n, i)
			n = positionKey.number(d, n, uint64(c.Position))
			n = segmentsKey.put(d, n)
			for j := range c.Segments {
				n = putSegment(d, comma(d, n, j), &c.Segments[j].Segment)
			}
			d[n], d[n+1] = ']', '}'
			n += 2
		}
	}
	d[n] = ']'
	return n + 1
}

// putWrites writes Write chunks, likewise.
func putWrites(d []byte, n int, m *transaction.Message) int {
	if m.Transport {
		for i, c := range m.Header.Writes {
			n = comma(d, n, i)
			d[n] = '['
			n = putSegments(d, n+1, c)
		}
	}
	d[n] = ']'
	return n + 1
}

// putReply writes a Reply chunk, likewise, or that there is none.
func putReply(d []byte, n int, m *transaction.Message, key, none *key) int {
	if !m.Transport || !m.Header.HasReply {
		return none.put(d, n)
	}
	return putSegments(d, key.put(d, n), m.Header.Reply)
}

// putSegments writes segments, likewise.
func putSegments(d []byte, n int, c rpcrdma.WriteChunk) int {
	for i := range c {
		n = putSegment(d, comma(d, n, i), &c[i])
	}
	d[n] = ']'
	return n + 1
}

func putSegment(d []byte, n int, s *rpcrdma.Segment) int {
	n = handleKey.number(d, n, uint64(s.Handle))
	n = lengthKey.number(d, n, uint64(s.Length))
	n = segmentOffsetKey.number(d, n, s.Offset)
	d[n] = '}'
	return n + 1
}

// comma writes one in front of all but the first of a list.
func comma(d []byte, n, i int) int {
	if i == 0 {
		return n
	}
	d[n] = ','
	return n + 1
}

// transfers writes the RDMA operations.
func transfers(d []byte, n int, tx *transaction.Transaction) int {
	if tx.Reads|tx.Writes == 0 && tx.ReadBytes|tx.WriteBytes == 0 {
		return n + copy(d[n:], noTransfers)
	}
	n = readsKey.number(d, n, uint64(tx.Reads))
	n = readBytesKey.number(d, n, tx.ReadBytes)
	n = writesKey.number(d, n, uint64(tx.Writes))
	return writeBytesKey.number(d, n, tx.WriteBytes)
}

// putPhases writes what latency does, without the brace at the end.
func putPhases(d []byte, n int, p *transaction.Phases) int {
	if p.CallTransfer|p.ArgumentPull|p.PullWait == 0 {
		n += copy(d[n:], inOnePacket)
		n += digits.Put((*[digits.Room]byte)(d[n:]), uint64(p.Server))
	} else {
		n = transferKey.number(d, n, uint64(p.CallTransfer))
		n = pullKey.number(d, n, uint64(p.ArgumentPull))
		n = waitKey.number(d, n, uint64(p.PullWait))
		n = serverKey.number(d, n, uint64(p.Server))
	}
	if p.ResultPush|p.ReplyTransfer == 0 {
		*(*[len(noTransferText)]byte)(d[n:]) = noTransferText
		n += len(noTransfer)
		n += digits.Put((*[digits.Room]byte)(d[n:]), uint64(p.Total))
	} else {
		n = pushKey.number(d, n, uint64(p.ResultPush))
		n = replyKey.number(d, n, uint64(p.ReplyTransfer))
		n = totalKey.number(d, n, uint64(p.Total))
	}
	if p.Ack >= 0 {
		n = ackedKey.number(d, n, uint64(p.Ack))
	}
	return n
}

// waits writes the brace at the end, and how long the call waited to be sent.
func waits(d []byte, n int, tx *transaction.Transaction) int {
	if tx.Credits|tx.Slots == 0 {
		return n + copy(d[n:], "}"+nothingBefore)
	}
	n = creditWaitKey.number(d, n, uint64(tx.Credits))
	return slotWaitKey.number(d, n, uint64(tx.Slots))
}
