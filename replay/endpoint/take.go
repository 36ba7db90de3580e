package endpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

func badReply(format string, args ...any) error {
	return fmt.Errorf("%w: %s", transport.ErrBadReply, fmt.Sprintf(format, args...))
}

// take checks a reply against the call and finds the message in it. If parts have to
// be read from the peer, pulls has the requests for that.
func (pc *pendingCall) take(l *link, h *rpcrdma.Header) error {
	m := &pc.call.Reply
	pc.items, pc.used = pc.items[:0], pc.used[:0]
	switch h.Type {
	case rpcrdma.TypeError:
		return &RemoteError{Code: h.Error, Low: h.Low, High: h.High}
	case rpcrdma.TypeMsg, rpcrdma.TypeMsgP, rpcrdma.TypeNoMsg:
	default:
		return badReply("a message of type %d", h.Type)
	}
	if len(h.Writes) > pc.writes {
		return badReply("%d Write chunks, %d were offered", len(h.Writes), pc.writes)
	}
	for i, chunk := range h.Writes {
		n, err := filled(chunk, pc.hdr.Writes[i])
		if err != nil {
			return err
		}
		if n > len(pc.call.Results[i]) {
			return badReply("%d bytes in Write chunk %d, which includes padding", n, i)
		}
		pc.used = append(pc.used, n)
		pc.moved.writes += n
		pc.items = append(pc.items, transport.Item{Data: pc.call.Results[i][:n:n]})
	}
	inReply := 0
	if h.HasReply {
		if !pc.hdr.HasReply && len(h.Reply) > 0 {
			return badReply("a Reply chunk that was not offered")
		}
		n, err := filled(h.Reply, pc.hdr.Reply)
		if err != nil {
			return err
		}
		inReply = n
		pc.moved.writes += n
	}
	if len(h.Reads) > 0 {
		if l.o.Model != ReadRead || pc.c.backward || inReply > 0 {
			return badReply("a Read list")
		}
		return pc.takeReads(l, h)
	}
	switch {
	case h.Type == rpcrdma.TypeNoMsg && inReply > 0:
		m.Stream = pc.reply.b[:inReply:inReply]
	case h.Type == rpcrdma.TypeNoMsg:
		return badReply("RDMA_NOMSG with an empty Reply chunk")
	case inReply > 0:
		return badReply("RDMA_MSG with %d bytes in the Reply chunk", inReply)
	default:
		m.Stream = h.Payload
	}
	m.Items = pc.items
	return pc.checkMessage()
}

// checkMessage makes sure that the message is the RPC reply to the call.
func (pc *pendingCall) checkMessage() error {
	s := pc.call.Reply.Stream
	if len(s) < 8 || binary.BigEndian.Uint32(s) != pc.xid || binary.BigEndian.Uint32(s[4:]) != uint32(oncrpc.TypeReply) {
		return badReply("the message is not an RPC reply with the XID of the call")
	}
	return nil
}

// filled returns how many bytes of an offered chunk the Responder claims to have
// written. They have to be the first bytes of the chunk.
func filled(got, offered rpcrdma.WriteChunk) (int, error) {
	if len(got) > len(offered) {
		return 0, badReply("a chunk of %d segments, %d were offered", len(got), len(offered))
	}
	n, full := 0, true
	for i, s := range got {
		if s.Length == 0 {
			full = full && offered[i].Length == 0
			continue
		}
		if !full || s.Length > offered[i].Length || s.Handle != offered[i].Handle || s.Offset != offered[i].Offset {
			return 0, badReply("segment %d of a chunk differs from the one that was offered", i)
		}
		full = s.Length == offered[i].Length
		n += int(s.Length)
	}
	return n, nil
}

// takeReads prepares the Reads of what the Responder exposes (ReadRead).
func (pc *pendingCall) takeReads(l *link, h *rpcrdma.Header) error {
	m := &pc.call.Reply
	var total uint64
	for i := range h.Reads {
		total += uint64(h.Reads[i].Length)
	}
	if total > uint64(l.o.MaxMessage) || len(h.Reads) > maxSegments {
		return badReply("%d bytes in %d Read segments", total, len(h.Reads))
	}
	m.Stream = h.Payload
	inline := h.Type != rpcrdma.TypeNoMsg && len(h.Payload) > 0
	for _, chunk := range h.ReadChunks() {
		n := int(chunk.Length)
		if chunk.Position == 0 && inline || chunk.Position%4 != 0 {
			return badReply("a Read chunk at position %d", chunk.Position)
		}
		var dst []byte
		if k := len(pc.items); chunk.Position != 0 && k < len(pc.call.Results) && n <= len(pc.call.Results[k]) && l.mem.usable(pc.call.Results[k]) {
			dst = pc.call.Results[k][:n:n]
		} else {
			b, err := l.mem.get(n)
			if err != nil {
				return err
			}
			pc.blocks = append(pc.blocks, b)
			dst = b.b[:n:n]
		}
		if chunk.Position == 0 {
			m.Stream, inline = dst, true
		} else {
			pc.items = append(pc.items, transport.Item{Position: chunk.Position, Data: dst})
		}
		for _, s := range chunk.Segments {
			pc.pulls, pc.sgl = l.appendOps(pc.pulls, pc.sgl, verbs.OpRead, s.Segment, dst[:s.Length])
			dst = dst[s.Length:]
		}
	}
	if !inline {
		return badReply("RDMA_NOMSG without a chunk at position zero")
	}
	m.Items = pc.items
	pc.moved.reads += int(total)
	if len(pc.pulls) == 0 {
		return pc.checkMessage()
	}
	return nil
}

// appendOps appends RDMA Reads or Writes of b to wrs, none longer than
// Options.OperationSize.
func (l *link) appendOps(wrs []verbs.WorkRequest, sgl [][]byte, op verbs.Op, s rpcrdma.Segment, b []byte) ([]verbs.WorkRequest, [][]byte) {
	most := min(l.o.OperationSize, l.mem.caps.MaxMessage)
	at := s.Offset
	for len(b) > 0 {
		n := min(len(b), most)
		sgl = append(sgl, b[:n:n])
		wrs = append(wrs, verbs.WorkRequest{Op: op, Handle: s.Handle, Offset: at, Local: sgl[len(sgl)-1 : len(sgl) : len(sgl)]})
		b = b[n:]
		at += uint64(n)
	}
	return wrs, sgl
}

// pulled sends RDMA_DONE when the Reads are complete, and checks the message.
func (pc *pendingCall) pulled(l *link) error {
	buf := l.sendBuffer()
	if buf == nil {
		return transport.ErrDisconnected
	}
	done := rpcrdma.Header{XID: pc.xid, Version: l.o.version(), Credits: pc.c.ask(), Type: rpcrdma.TypeDone, Dialect: l.o.Dialect}
	buf.b = done.Append(buf.b[:0])
	l.enqueue(work{send: buf.request(0, false), buf: buf})
	l.flush()
	return pc.checkMessage()
}

// copyOut copies what the peer has written into blocks to the caller's memory.
func (pc *pendingCall) copyOut() {
	for i := range pc.op.bounces {
		if b := &pc.op.bounces[i]; b.dst != nil && b.chunk < len(pc.used) {
			copy(b.dst, b.b.b[:min(pc.used[b.chunk], len(b.dst))])
		}
	}
}
