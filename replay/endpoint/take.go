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

// take holds a reply against the call and finds the message in it. If parts of
// it have to be read from the peer, pulls says how.
func (cs *callState) take(l *link, h *rpcrdma.Header) error {
	m := &cs.call.Reply
	cs.items, cs.used = cs.items[:0], cs.used[:0]
	switch h.Type {
	case rpcrdma.TypeError:
		return &RemoteError{Code: h.Error, Low: h.Low, High: h.High}
	case rpcrdma.TypeMsg, rpcrdma.TypeMsgP, rpcrdma.TypeNoMsg:
	default:
		return badReply("a message of type %d", h.Type)
	}
	if len(h.Writes) > cs.writes {
		return badReply("%d Write chunks, offered were %d", len(h.Writes), cs.writes)
	}
	for i, chunk := range h.Writes {
		n, err := filled(chunk, cs.hdr.Writes[i])
		if err != nil {
			return err
		}
		if n > len(cs.call.Results[i]) {
			return badReply("%d bytes in Write chunk %d, and padding", n, i)
		}
		cs.used = append(cs.used, n)
		cs.moved[1] += n
		cs.items = append(cs.items, transport.Item{Data: cs.call.Results[i][:n:n]})
	}
	inReply := 0
	if h.HasReply {
		if !cs.hdr.HasReply && len(h.Reply) > 0 {
			return badReply("a Reply chunk that was not offered")
		}
		n, err := filled(h.Reply, cs.hdr.Reply)
		if err != nil {
			return err
		}
		inReply = n
		cs.moved[1] += n
	}
	if len(h.Reads) > 0 {
		if l.o.Model != ReadRead || cs.c.backward || inReply > 0 {
			return badReply("it has a Read list")
		}
		return cs.takeReads(l, h)
	}
	switch {
	case h.Type == rpcrdma.TypeNoMsg && inReply > 0:
		m.Stream = cs.reply.b[:inReply:inReply]
	case h.Type == rpcrdma.TypeNoMsg:
		return badReply("RDMA_NOMSG, and the Reply chunk is empty")
	case inReply > 0:
		return badReply("RDMA_MSG, and %d bytes in the Reply chunk", inReply)
	default:
		m.Stream = h.Payload
	}
	m.Items = cs.items
	return cs.checkMessage()
}

// checkMessage makes sure that what was received is the reply to the call.
func (cs *callState) checkMessage() error {
	s := cs.call.Reply.Stream
	if len(s) < 8 || binary.BigEndian.Uint32(s) != cs.xid || binary.BigEndian.Uint32(s[4:]) != uint32(oncrpc.TypeReply) {
		return badReply("no RPC reply with the call's XID in it")
	}
	return nil
}

// filled is how many bytes of an offered chunk the Responder says it has
// written. They have to be the first ones.
func filled(got, offered rpcrdma.WriteChunk) (int, error) {
	if len(got) > len(offered) {
		return 0, badReply("a chunk of %d segments, offered were %d", len(got), len(offered))
	}
	n, full := 0, true
	for i, s := range got {
		if s.Length == 0 {
			full = full && offered[i].Length == 0
			continue
		}
		if !full || s.Length > offered[i].Length || s.Handle != offered[i].Handle || s.Offset != offered[i].Offset {
			return 0, badReply("segment %d of a chunk is not as it was offered", i)
		}
		full = s.Length == offered[i].Length
		n += int(s.Length)
	}
	return n, nil
}

// takeReads prepares to read what the Responder exposes (ReadRead).
func (cs *callState) takeReads(l *link, h *rpcrdma.Header) error {
	m := &cs.call.Reply
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
		if k := len(cs.items); chunk.Position != 0 && k < len(cs.call.Results) && n <= len(cs.call.Results[k]) && l.mem.usable(cs.call.Results[k]) {
			dst = cs.call.Results[k][:n:n]
		} else {
			b, err := l.mem.get(n)
			if err != nil {
				return err
			}
			cs.blocks = append(cs.blocks, b)
			dst = b.b[:n:n]
		}
		if chunk.Position == 0 {
			m.Stream, inline = dst, true
		} else {
			cs.items = append(cs.items, transport.Item{Position: chunk.Position, Data: dst})
		}
		for _, s := range chunk.Segments {
			cs.pulls, cs.sgl = l.appendOps(cs.pulls, cs.sgl, verbs.OpRead, s.Segment, dst[:s.Length])
			dst = dst[s.Length:]
		}
	}
	if !inline {
		return badReply("RDMA_NOMSG without a chunk at position zero")
	}
	m.Items = cs.items
	cs.moved[0] += int(total)
	if len(cs.pulls) == 0 {
		return cs.checkMessage()
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

// pull posts the Reads. RDMA_DONE follows when they are complete, and not behind
// a fence: that would hold up the Reads of all other replies.
func (cs *callState) pull(l *link) {
	cs.move(l, callPulling)
	l.enqueue(work{wrs: cs.pulls, owner: cs}) // lost sees to it if the connection is over
	l.flush()
}

// pulled is called when the Reads are complete.
func (cs *callState) pulled(l *link) error {
	buf := l.sendBuffer()
	if buf == nil {
		return transport.ErrDisconnected
	}
	done := rpcrdma.Header{XID: cs.xid, Version: l.o.version(), Credits: cs.c.ask(), Type: rpcrdma.TypeDone, Dialect: l.o.Dialect}
	buf.b = done.Append(buf.b[:0])
	l.enqueue(work{send: buf.request(0, false), buf: buf})
	l.flush()
	return cs.checkMessage()
}

// copyOut moves what the peer has written into blocks to where the caller
// expects it.
func (cs *callState) copyOut() {
	for i := range cs.op.bounces {
		if b := &cs.op.bounces[i]; b.dst != nil && b.chunk < len(cs.used) {
			copy(b.dst, b.b.b[:min(cs.used[b.chunk], len(b.dst))])
		}
	}
}
