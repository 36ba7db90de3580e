package check

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// breach is a capture that breaks one rule.
type breach struct {
	rule string
	// with are findings that cannot be kept apart: a rule about the answer to
	// a call that breaks another one.
	with    []string
	by      Party
	profile Profile
	play    func(s *scene)
}

// each breach happens between transactions that are in order.
func (b *breach) scene(connect bool) *scene {
	s := newScene()
	if connect {
		s.connect()
		s.small()
	}
	b.play(s)
	return s
}

var breaches = []breach{
	{rule: "read-list-order", by: Requester, play: func(s *scene) {
		// A long call, reduced, whose chunk at position zero comes last.
		h := s.next()
		rpc := write3(h.XID, 2000)
		zero, data := s.segment(uint32(len(rpc))), s.segment(2000)
		h.Type = rpcrdma.TypeNoMsg
		h.Reads = []rpcrdma.ReadSegment{{Position: uint32(len(rpc)), Segment: data}, {Segment: zero}}
		s.send(client, h.Append(nil))
		s.read(server, zero, rpc)
		s.read(server, data, make([]byte, 2000))
		s.send(server, message(answer(h), write3Reply(h.XID, 2000)))
	}, with: []string{"long-call-with-chunks", "long-call-needless"}},
	{rule: "done-lost", by: Requester, profile: RFC5666, with: []string{"reply-with-read-list"}, play: func(s *scene) { s.readRead(-1) }},
	{rule: "done-late", by: Requester, profile: RFC5666, with: []string{"reply-with-read-list"}, play: func(s *scene) { s.readRead(1500e6) }},
	{rule: "requester-initiated-rdma", by: Requester, play: func(s *scene) {
		s.read(client, rpcrdma.Segment{Handle: 0x99, Offset: 0x1000, Length: 100}, make([]byte, 100))
		s.small()
	}},
	{rule: "nomsg-reply-without-reply-chunk", by: Responder, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		r := answer(h)
		r.Type = rpcrdma.TypeNoMsg
		s.send(server, r.Append(nil))
	}},
	{rule: "nomsg-without-chunk", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(3000)
		h.HasReply, h.Reply = true, rpcrdma.WriteChunk{seg}
		s.send(client, message(h, readdir3(h.XID)))
		r := answer(h)
		seg.Length = 0
		r.Type, r.HasReply, r.Reply = rpcrdma.TypeNoMsg, true, rpcrdma.WriteChunk{seg}
		s.send(server, r.Append(nil))
	}},
	{rule: "nomsg-without-chunk", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(2000)
		h.Type = rpcrdma.TypeNoMsg
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
		s.send(client, h.Append(nil))
		s.send(server, refuse(h))
	}, with: []string{"position-beyond-message"}},
	{rule: "nomsg-without-chunk", by: Requester, play: func(s *scene) {
		s.small()
		h := s.next()
		h.Type = rpcrdma.TypeNoMsg
		s.send(client, h.Append(nil))
		s.send(server, refuse(h))
	}},
	{rule: "nomsg-without-chunk", by: Requester, play: func(s *scene) {
		s.small()
		h := s.next()
		h.Type, h.HasReply, h.Reply = rpcrdma.TypeNoMsg, true, rpcrdma.WriteChunk{s.segment(3000)}
		s.send(client, h.Append(nil))
		s.send(server, refuse(h))
	}},
	{rule: "msg-without-message", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, seg, make([]byte, 1000))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, r.Append(nil))
	}},
	{rule: "xid-mismatch", by: Requester, play: func(s *scene) {
		s.longCall(func(_ *rpcrdma.Header, rpc *[]byte) { *rpc = rename3(0x77777777) })
	}},
	{rule: "xid-mismatch", by: Responder, play: func(s *scene) {
		s.longReply(func(_, _ *rpcrdma.Header, rpc *[]byte) { *rpc = readdir3Reply(0x77777777) })
	}},
	{rule: "error-from-requester", by: Requester, play: func(s *scene) {
		s.send(client, (&rpcrdma.Header{XID: 0x4242, Version: 1, Credits: 1, Type: rpcrdma.TypeError, Error: rpcrdma.ErrChunk}).Append(nil))
		s.small()
	}},
	{rule: "header-in-rdma", by: Responder, play: func(s *scene) {
		s.longReply(func(h, r *rpcrdma.Header, rpc *[]byte) {
			*rpc = message(answer(h), *rpc)
			r.Reply[0].Length += 28
		})
	}},
	{rule: "read-chunk-not-one-item", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(2000)
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
		s.send(client, message(h, write3(h.XID, 1500)))
		s.read(server, seg, make([]byte, 2000))
		s.send(server, message(answer(h), write3Reply(h.XID, 1500)))
	}},
	{rule: "read-chunk-not-one-item", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
		s.send(client, message(h, write3(h.XID, 1500)))
		s.read(server, seg, make([]byte, 1000))
		s.send(server, refuse(h))
	}},
	{rule: "long-call-needless", by: Requester, play: func(s *scene) {
		h := s.next()
		rpc := getattr(h.XID)
		seg := s.segment(uint32(len(rpc)))
		h.Type, h.Reads = rpcrdma.TypeNoMsg, []rpcrdma.ReadSegment{{Segment: seg}}
		s.send(client, h.Append(nil))
		s.read(server, seg, rpc)
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "long-call-with-chunks", by: Requester, play: func(s *scene) {
		h := s.next()
		rpc := callOf(h.XID, nfsProgram, 3, 10, words(fh, string(make([]byte, 4200)), 0, 0, 0, 0, 0, 0, 1500))
		zero, data := s.segment(uint32(len(rpc))), s.segment(1500)
		h.Type = rpcrdma.TypeNoMsg
		h.Reads = []rpcrdma.ReadSegment{{Segment: zero}, {Position: uint32(len(rpc)), Segment: data}}
		s.send(client, h.Append(nil))
		s.read(server, zero, rpc)
		s.read(server, data, make([]byte, 1500))
		s.send(server, message(answer(h), replyOf(h.XID, words(70, 0, 0))))
	}},
	{rule: "msg-with-position-zero", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(100)
		h.Reads = []rpcrdma.ReadSegment{{Segment: seg}}
		s.send(client, message(h, getattr(h.XID)))
		s.read(server, seg, make([]byte, 100))
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "msg-reply-uses-reply-chunk", by: Responder, play: func(s *scene) {
		s.longReply(func(_, r *rpcrdma.Header, _ *[]byte) { r.Type = rpcrdma.TypeMsg })
	}},
	{rule: "position-beyond-message", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(2000)
		h.Reads = []rpcrdma.ReadSegment{{Position: 5000, Segment: seg}}
		s.send(client, message(h, write3(h.XID, 2000)))
		s.send(server, refuse(h))
	}},
	{rule: "position-unaligned", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(2000)
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position - 2, Segment: seg}}
		s.send(client, message(h, write3(h.XID, 2000)))
		s.send(server, refuse(h))
	}},
	{rule: "pad-in-stream", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1501)
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
		s.send(client, message(h, words(write3(h.XID, 1501), make([]byte, 3))))
		s.read(server, seg, make([]byte, 1501))
		s.send(server, message(answer(h), write3Reply(h.XID, 1501)))
	}},
	{rule: "pad-in-stream", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1501)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1501)))
		s.write(server, seg, make([]byte, 1501))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, words(read3Reply(h.XID, 1501), make([]byte, 3))))
	}},
	{rule: "write-chunk-pad-written", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1504)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1504)))
		s.write(server, seg, make([]byte, 1504))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 1501)))
	}},
	{rule: "write-chunk-not-one-item", by: Responder, play: func(s *scene) { s.readLengths(1500, 1500, 1200) }},
	{rule: "write-chunk-not-one-item", by: Responder, play: func(s *scene) { s.readLengths(1500, 1200, 1500) }},
	{rule: "write-chunk-pad-room", by: Requester, play: func(s *scene) {
		h := s.next()
		a, b := s.segment(1501), s.segment(4)
		h.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(client, message(h, read3(h.XID, 1501)))
		s.write(server, a, make([]byte, 1501))
		r := answer(h)
		b.Length = 0
		r.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(server, message(r, read3Reply(h.XID, 1501)))
	}},
	{rule: "read-chunk-pad", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1504)
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
		s.send(client, message(h, write3(h.XID, 1501)))
		s.read(server, seg, make([]byte, 1501))
		s.send(server, message(answer(h), write3Reply(h.XID, 1501)))
	}},
	{rule: "write-chunk-ignored", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(500)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 500)))
		r := answer(h)
		seg.Length = 0
		r.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(server, message(r, read3Inline(h.XID, 500)))
	}},
	{rule: "write-list-changed", by: Responder, play: func(s *scene) {
		h := s.next()
		h.Writes = []rpcrdma.WriteChunk{{s.segment(500)}}
		s.send(client, message(h, read3(h.XID, 500)))
		s.send(server, message(answer(h), replyOf(h.XID, words(70, 0))))
	}},
	{rule: "write-segments-changed", by: Responder, play: func(s *scene) {
		h := s.next()
		a, b := s.segment(500), s.segment(500)
		h.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, a, make([]byte, 500))
		r := answer(h)
		r.Writes = []rpcrdma.WriteChunk{{a}}
		s.send(server, message(r, read3Reply(h.XID, 500)))
	}},
	{rule: "write-segment-altered", by: Responder, play: func(s *scene) {
		s.readData(1000, func(_, r *rpcrdma.Header) {
			w := r.Writes[0][0]
			w.Offset += 8
			r.Writes = []rpcrdma.WriteChunk{{w}}
		})
	}},
	{rule: "unused-chunk-echoed", by: Responder, play: func(s *scene) {
		h := s.next()
		h.Writes = []rpcrdma.WriteChunk{{s.segment(500)}}
		s.send(client, message(h, read3(h.XID, 500)))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, replyOf(h.XID, words(70, 0))))
	}},
	{rule: "unused-chunk-emptied", by: Responder, play: func(s *scene) {
		h := s.next()
		h.Writes = []rpcrdma.WriteChunk{{s.segment(500)}}
		s.send(client, message(h, read3(h.XID, 500)))
		r := answer(h)
		r.Writes = []rpcrdma.WriteChunk{{}}
		s.send(server, message(r, replyOf(h.XID, words(70, 0))))
	}},
	{rule: "empty-chunk-filled", by: Responder, play: func(s *scene) {
		h := s.next()
		h.Writes = []rpcrdma.WriteChunk{{}}
		s.send(client, message(h, read3(h.XID, 500)))
		r := answer(h)
		r.Writes = []rpcrdma.WriteChunk{{{Handle: 5, Length: 0, Offset: 0}}}
		s.send(server, message(r, read3Inline(h.XID, 500)))
	}},
	{rule: "chunk-not-contiguous", by: Responder, play: func(s *scene) {
		h := s.next()
		a, b := s.segment(500), s.segment(500)
		h.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, a, make([]byte, 300))
		s.write(server, b, make([]byte, 300))
		r := answer(h)
		a.Length, b.Length = 300, 300
		r.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(server, message(r, read3Reply(h.XID, 600)))
	}},
	{rule: "reply-chunk-altered", by: Responder, play: func(s *scene) {
		s.longReply(func(_, r *rpcrdma.Header, _ *[]byte) { r.Reply[0].Handle++ })
	}},
	{rule: "reply-chunk-not-returned", by: Responder, play: func(s *scene) {
		h := s.next()
		h.HasReply, h.Reply = true, rpcrdma.WriteChunk{s.segment(4000)}
		s.send(client, message(h, readdir3(h.XID)))
		s.send(server, message(answer(h), replyOf(h.XID, words(70, 0))))
	}},
	{rule: "call-over-inline", by: Requester, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, rename3(h.XID)))
		s.send(server, message(answer(h), rename3Reply(h.XID)))
	}},
	{rule: "reply-over-inline", by: Responder, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, readdir3(h.XID)))
		s.send(server, message(answer(h), readdir3Reply(h.XID)))
	}},
	{rule: "chunks-refused", by: Responder, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		s.send(server, refuse(h))
	}},
	{rule: "reply-room-too-small", by: Requester, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, readdir3(h.XID)))
		s.send(server, refuse(h))
	}},
	{rule: "reply-chunk-needless", by: Responder, play: func(s *scene) {
		s.longReply(func(_, r *rpcrdma.Header, rpc *[]byte) {
			*rpc = replyOf(r.XID, words(70, 0))
			r.Reply[0].Length = uint32(len(*rpc))
		})
	}},
	{rule: "reply-chunk-ignored", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(4000)
		h.HasReply, h.Reply = true, rpcrdma.WriteChunk{seg}
		s.send(client, message(h, readdir3(h.XID)))
		r := answer(h)
		seg.Length = 0
		r.HasReply, r.Reply = true, rpcrdma.WriteChunk{seg}
		s.send(server, message(r, readdir3Reply(h.XID)))
	}},
	{rule: "credits-exceeded", by: Requester, play: func(s *scene) { s.flood(17) }},
	{rule: "zero-grant", by: Responder, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		r := answer(h)
		r.Credits = 0
		s.send(server, message(r, failed(h.XID)))
	}},
	{rule: "grant-changed", by: Responder, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		r := answer(h)
		r.Credits = 20
		s.send(server, message(r, failed(h.XID)))
	}},
	{rule: "rnr-nak", by: Responder, with: []string{"packets-resent"}, play: func(s *scene) {
		h := s.next()
		b := message(h, getattr(h.XID))
		s.sendRaw(client, b, 0)
		s.nak(server, roce.RNR(1))
		s.wait(100_000)
		s.psn[client]--
		s.send(client, b)
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "version-not-1", by: Requester, play: func(s *scene) {
		h := s.next()
		b := message(h, getattr(h.XID))
		b[7] = 9
		s.send(client, b)
		s.send(server, (&rpcrdma.Header{XID: h.XID, Version: 9, Credits: 16, Type: rpcrdma.TypeError, Error: rpcrdma.ErrVers, Low: 1, High: 1}).Append(nil))
	}},
	{rule: "version-not-refused", by: Responder, with: []string{"version-not-1"}, play: func(s *scene) {
		h := s.next()
		b := message(h, getattr(h.XID))
		b[7] = 9
		s.send(client, b)
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "error-fields", by: Responder, with: []string{"version-not-1"}, play: func(s *scene) {
		h := s.next()
		b := message(h, getattr(h.XID))
		b[7] = 9
		s.send(client, b)
		s.send(server, (&rpcrdma.Header{XID: h.XID, Version: 1, Credits: 16, Type: rpcrdma.TypeError, Error: rpcrdma.ErrVers, Low: 1, High: 1}).Append(nil))
	}},
	{rule: "error-fields", by: Responder, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		s.send(server, (&rpcrdma.Header{XID: h.XID, Version: 1, Credits: 16, Type: rpcrdma.TypeError, Error: rpcrdma.ErrVers, Low: 1, High: 2}).Append(nil))
	}},
	{rule: "backward-with-chunks", by: Requester, play: func(s *scene) {
		s.callback(func(h *rpcrdma.Header) { h.HasReply, h.Reply = true, rpcrdma.WriteChunk{{Handle: 0x1234, Length: 0}} })
	}, with: []string{"reply-chunk-not-returned"}},
	{rule: "backward-version", by: Requester, with: []string{"version-not-1"}, play: func(s *scene) {
		s.xid++
		h := &rpcrdma.Header{XID: 0x99000000 + s.xid, Version: 1, Credits: 2, Type: rpcrdma.TypeMsg}
		b := message(h, callOf(h.XID, callbackProgram, 1, 0, nil))
		b[7] = 9
		s.send(server, b)
		s.send(client, (&rpcrdma.Header{XID: h.XID, Version: 9, Credits: 16, Type: rpcrdma.TypeError, Error: rpcrdma.ErrVers, Low: 1, High: 1}).Append(nil))
	}},
	{rule: "argument-not-eligible", by: Requester, play: func(s *scene) { s.reducedName(true) }},
	{rule: "violation-accepted", by: Responder, with: []string{"argument-not-eligible"}, play: func(s *scene) { s.reducedName(false) }},
	{rule: "result-not-eligible", by: Responder, with: []string{"write-list-needless"}, play: func(s *scene) {
		h := s.next()
		seg := s.segment(100)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, getattr(h.XID)))
		s.write(server, seg, make([]byte, 100))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, failed(h.XID)))
	}},
	{rule: "write-list-needless", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(100)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, getattr(h.XID)))
		seg.Length = 0
		r := answer(h)
		r.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(server, message(r, failed(h.XID)))
	}},
	{rule: "write-chunks-too-many", by: Requester, play: func(s *scene) {
		s.readData(1000, func(h, r *rpcrdma.Header) {
			seg := s.segment(1000)
			h.Writes = append(h.Writes, rpcrdma.WriteChunk{seg})
			seg.Length = 0
			r.Writes = append(r.Writes, rpcrdma.WriteChunk{seg})
		})
	}},
	{rule: "write-chunk-too-small", by: Requester, play: func(s *scene) {
		h := s.next()
		seg := s.segment(600)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, seg, make([]byte, 600))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 600)))
	}},
	{rule: "call-refused", by: Responder, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		s.send(server, message(answer(h), words(h.XID, 1, 0, 0, 0, 4)))
	}},
	{rule: "msgp-used", by: Requester, play: func(s *scene) {
		h := s.next()
		h.Type, h.Align, h.Threshold = rpcrdma.TypeMsgP, 4, 1024
		s.send(client, message(h, getattr(h.XID)))
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "msgp-refused", by: Responder, with: []string{"msgp-used"}, play: func(s *scene) {
		h := s.next()
		h.Type, h.Align, h.Threshold = rpcrdma.TypeMsgP, 4, 1024
		s.send(client, message(h, getattr(h.XID)))
		s.send(server, refuse(h))
	}},
	{rule: "done-used", by: Requester, play: func(s *scene) {
		s.send(client, (&rpcrdma.Header{XID: s.xid, Version: 1, Credits: 32, Type: rpcrdma.TypeDone}).Append(nil))
	}},
	{rule: "reply-with-read-list", by: Responder, with: []string{"requester-initiated-rdma", "done-used"}, play: func(s *scene) { s.readRead(1000) }},
	{rule: "header-malformed", by: Responder, play: func(s *scene) {
		s.send(server, []byte("this is not what one expects of a server"))
	}},
	{rule: "malformed-not-refused", by: Responder, with: []string{"header-malformed"}, play: func(s *scene) {
		h := s.next()
		h.Type = 7 // no such type
		b := message(h, getattr(h.XID))
		s.send(client, b)
		s.small()
		s.disconnect(client)
	}},
	{rule: "protected-body-reduced", by: Requester, with: []string{"rpcsec-gss"}, play: func(s *scene) {
		// A READ with integrity: the body is an opaque and a checksum.
		h := s.next()
		seg := s.segment(500)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		cred := words(1, 0, 7, 2, "ctx1")
		body := words(7, fh, uint64(0), 500)
		rpc := words(h.XID, 0, 2, nfsProgram, 3, 6, 6, string(cred), 6, "mic!", string(body), "checksum")
		s.send(client, message(h, rpc))
		seg.Length = 0
		r := answer(h)
		r.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(server, message(r, words(h.XID, 1, 0, 6, "mic!", 0, string(words(7, 70, 0)), "checksum")))
	}},
	{rule: "rpcsec-gss", by: Requester, play: func(s *scene) {
		// Two calls with integrity: once for each service.
		s.integrity()
		s.integrity()
	}},
	{rule: "access-after-reply", by: Responder, play: func(s *scene) {
		s.readData(1000, nil)
		s.wait(1e6)
		s.write(server, rpcrdma.Segment{Handle: s.rkey, Offset: s.va}, make([]byte, 100))
		s.small()
	}},
	{rule: "access-after-invalidate", by: Responder, play: func(s *scene) {
		s.invalidated(func(seg rpcrdma.Segment) uint32 { return seg.Handle })
		s.write(server, rpcrdma.Segment{Handle: s.rkey, Offset: s.va}, make([]byte, 100))
		s.small()
	}},
	{rule: "access-not-offered", by: Responder, play: func(s *scene) {
		s.read(server, rpcrdma.Segment{Handle: 0xbad, Offset: 0x1000}, make([]byte, 100))
		s.small()
	}},
	{rule: "access-wrong-direction", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
		s.send(client, message(h, write3(h.XID, 1000)))
		s.write(server, seg, make([]byte, 100))
		s.read(server, seg, make([]byte, 1000))
		s.send(server, message(answer(h), write3Reply(h.XID, 1000)))
		s.small()
	}},
	{rule: "access-beyond-segment", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, seg, make([]byte, 1100))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 1000)))
	}},
	{rule: "access-empty-segment", by: Responder, play: func(s *scene) {
		h := s.next()
		a, b := s.segment(1000), s.segment(0)
		h.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, a, make([]byte, 1000))
		s.write(server, b, make([]byte, 4))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 1000)))
		s.small()
	}},
	{rule: "memory-offered-twice", by: Requester, play: func(s *scene) {
		a, b := s.next(), s.next()
		seg := s.segment(1000)
		a.Writes, b.Writes = []rpcrdma.WriteChunk{{seg}}, []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(a, read3(a.XID, 1000)))
		s.send(client, message(b, read3(b.XID, 1000)))
		for _, h := range []*rpcrdma.Header{b, a} {
			s.write(server, seg, make([]byte, 1000))
			r := answer(h)
			r.Writes = h.Writes
			s.send(server, message(r, read3Reply(h.XID, 1000)))
		}
	}},
	{rule: "invalidate-foreign-handle", by: Responder, play: func(s *scene) {
		s.invalidated(func(rpcrdma.Segment) uint32 { return 0x4711 })
	}},
	{rule: "handle-not-unique", by: Requester, play: func(s *scene) {
		h := s.next()
		a := s.segment(500)
		b := a
		b.Offset += 4096
		h.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, a, make([]byte, 500))
		s.write(server, b, make([]byte, 500))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 1000)))
	}},
	{rule: "segments-overlap", by: Requester, play: func(s *scene) {
		h := s.next()
		a := s.segment(500)
		b := a
		b.Offset += 100
		h.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(client, message(h, read3(h.XID, 1000)))
		r := answer(h)
		a.Length, b.Length = 0, 0
		r.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(server, message(r, replyOf(h.XID, words(70, 0))))
	}},
	{rule: "chunk-bytes-missing", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, seg, make([]byte, 900))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 1000)))
	}},
	{rule: "read-chunk-not-pulled", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
		s.send(client, message(h, write3(h.XID, 1000)))
		s.read(server, seg, make([]byte, 500))
		s.send(server, message(answer(h), write3Reply(h.XID, 1000)))
	}},
	{rule: "first-not-mtu", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1000)))
		p := s.request(server, roce.RCWriteFirst, make([]byte, 512))
		p.RETH = roce.RETHFields{VA: seg.Offset, RKey: seg.Handle, DMALen: 1000}
		s.request(server, roce.RCWriteLast, make([]byte, 488))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 1000)))
	}},
	{rule: "payload-over-mtu", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1100)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1100)))
		p := s.request(server, roce.RCWriteOnly, make([]byte, 1100))
		p.RETH = roce.RETHFields{VA: seg.Offset, RKey: seg.Handle, DMALen: 1100}
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 1100)))
	}},
	{rule: "opcode-sequence", by: Responder, with: []string{"chunk-bytes-missing"}, play: func(s *scene) {
		// A Write begins while another one has not ended.
		h := s.next()
		a, b := s.segment(1500), s.segment(500)
		h.Writes = []rpcrdma.WriteChunk{{a, b}}
		s.send(client, message(h, read3(h.XID, 2000)))
		p := s.request(server, roce.RCWriteFirst, make([]byte, mtu))
		p.RETH = roce.RETHFields{VA: a.Offset, RKey: a.Handle, DMALen: 1500}
		s.write(server, b, make([]byte, 500))
		s.write(server, rpcrdma.Segment{Handle: a.Handle, Offset: a.Offset + mtu}, make([]byte, 1500-mtu))
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 2000)))
	}},
	{rule: "rdma-length", by: Responder, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1000)))
		p := s.request(server, roce.RCWriteOnly, make([]byte, 1000))
		p.RETH = roce.RETHFields{VA: seg.Offset, RKey: seg.Handle, DMALen: 900}
		r := answer(h)
		r.Writes = h.Writes
		s.send(server, message(r, read3Reply(h.XID, 1000)))
	}},
	{rule: "operation-refused", by: Responder, with: []string{"call-unanswered"}, play: func(s *scene) {
		h := s.next()
		seg := s.segment(1000)
		h.Writes = []rpcrdma.WriteChunk{{seg}}
		s.send(client, message(h, read3(h.XID, 1000)))
		s.write(server, seg, make([]byte, 1000))
		s.nak(client, roce.NAKRemoteAccess)
		s.disconnect(client)
	}},
	{rule: "closed-by-responder", by: Responder, play: func(s *scene) { s.disconnect(server) }},
	{rule: "call-unanswered", by: Requester, with: []string{"closed-by-responder"}, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		s.disconnect(server)
	}},
	{rule: "xid-resent-after-reconnect", by: Requester, with: []string{"call-unanswered", "closed-by-responder"}, play: func(s *scene) {
		h := s.next()
		b := message(h, getattr(h.XID))
		s.send(client, b)
		s.disconnect(server)
		s.wait(1e6)
		s.again()
		s.connect()
		s.send(client, b)
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "xid-resent", by: Requester, play: func(s *scene) {
		h := s.next()
		b := message(h, getattr(h.XID))
		s.send(client, b)
		s.wait(5e9)
		s.send(client, b)
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "xid-reused", by: Requester, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		s.send(client, message(h, readdir3(h.XID)))
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "reply-repeated", by: Responder, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		s.send(server, message(answer(h), failed(h.XID)))
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "connection-rejected", by: Responder, play: func(s *scene) {
		s.again()
		s.ask(private(1024, 1024, true))
		s.manage(server, ibcm.AttributeREJ, func(d []byte) {
			r := ibcm.REJ(d)
			r.SetIDs(0, s.comm)
			r.SetReason(8)
		})
	}},
	{rule: "connection-unanswered", by: Unknown, play: func(s *scene) {
		s.again()
		s.ask(private(1024, 1024, true))
		s.wait(4e9)
		s.ask(private(1024, 1024, true))
	}},
	{rule: "delegation-recalled", by: Requester, play: func(s *scene) {
		s.recall("delegation 1", 0)
		s.small()
		s.wait(3e6)
		s.giveBack("delegation 1", 0)
		s.giveBack("delegation 2", 0) // nobody has asked for that one
	}},
	{rule: "reply-contradicts", by: Responder, play: func(s *scene) {
		s.nfs(4, 1, words("", 1, 1, 53, []byte(testSession), 1, 0, 0, 0), words(0, "", 1, 53, 0, []byte(testSession), 1, 2, 15, 15, 0))
	}},
	{rule: "readdir-cookies", by: Responder, play: func(s *scene) {
		s.nfs(3, 16, words("h", uint64(0), uint64(0), 512), words(0, 0, uint64(0), 1, uint64(7), "a", uint64(0), 0, 1))
	}},
	{rule: "change-attribute-kept", by: Responder, play: func(s *scene) {
		s.nfs(4, 1, words("", 1, 2, 22, "h", 28, "x"), words(0, "", 2, 22, 0, 28, 0, 1, uint64(5), uint64(5)))
	}},
	{rule: "change-time-back", by: Responder, play: func(s *scene) { s.attributes(7, 2000); s.attributes(7, 1000) }},
	{rule: "attribute-moved", by: Responder, play: func(s *scene) { s.attributes(7, 1000); s.attributes(8, 1000) }},
	{rule: "attributes-not-asked", by: Responder, play: func(s *scene) {
		s.nfs(4, 1, words("", 1, 2, 22, "h", 9, 1, 1<<4), words(0, "", 2, 22, 0, 9, 0, 1, 1<<3|1<<4, 16, uint64(1), uint64(2)))
	}},
	{rule: "value-undefined", by: Responder, play: func(s *scene) { // the end of a directory
		s.nfs(3, 16, words("h", uint64(0), uint64(0), 512), words(0, 0, uint64(0), 0, 7))
	}},
	{rule: "value-undefined", by: Responder, play: func(s *scene) { // the type of a file
		s.nfs(3, 1, words("h"), words(0, 9, 0o644, 1, 0, 0, uint64(10), uint64(10), 0, 0, uint64(1), uint64(7), 9, 0, 9, 0, 9, 0))
	}},
	{rule: "results-malformed", by: Responder, play: func(s *scene) { // neither another entry nor the end of the directory
		s.nfs(3, 16, words("h", uint64(0), uint64(0), 512), words(0, 0, uint64(0), 1, uint64(7), "a", uint64(9)))
	}},
	{rule: "backchannel-down", by: Responder, play: func(s *scene) {
		for seq := range 3 {
			s.nfs(4, 1, words("", 1, 1, 53, []byte(testSession), seq+1, 0, 0, 0), words(0, "", 1, 53, 0, []byte(testSession), seq+1, 0, 0, 0, 1))
		}
	}},
	{rule: "offload-unreported", by: Responder, play: func(s *scene) { s.copies(2, 1) }},
	{rule: "callback-unbound", by: Requester, play: func(s *scene) { s.sessionCallback() }},
	{rule: "form-unanswered", by: Responder, with: []string{"call-unanswered", "call-unanswered", "closed-by-responder"}, play: func(s *scene) {
		s.small()
		s.unanswered(2)
		s.disconnect(server)
	}},
	{rule: "bad-crc", by: Unknown, play: func(s *scene) {
		s.small()
		s.spoil[len(s.recs)-1] = true // an acknowledgement
		s.small()
	}},
	{rule: "packets-resent", by: Unknown, play: func(s *scene) {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		s.wait(100e6)
		s.psn[client]--
		s.send(client, message(h, getattr(h.XID)))
		s.send(server, message(answer(h), failed(h.XID)))
	}},
	{rule: "capture-gaps", by: Unknown, play: func(s *scene) {
		s.small()
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		s.send(server, message(answer(h), failed(h.XID)))
		// The call of the last transaction but one is missing.
		s.recs = slices.Delete(s.recs, len(s.recs)-8, len(s.recs)-7)
	}},
}

// Breaches that begin with the setup of the connection.
var setupBreaches = []breach{
	{rule: "calls-before-first-reply", by: Requester, play: func(s *scene) {
		s.connect()
		s.two()
	}},
	{rule: "invalidate-not-offered", by: Responder, play: func(s *scene) {
		s.connectWith(private(4096, 4096, false), private(4096, 4096, true))
		s.invalidated(func(seg rpcrdma.Segment) uint32 { return seg.Handle })
	}},
	{rule: "invalidate-undeclared", by: Responder, play: func(s *scene) {
		s.connectWith(private(4096, 4096, true), private(4096, 4096, false))
		s.invalidated(func(seg rpcrdma.Segment) uint32 { return seg.Handle })
	}},
	{rule: "small-inline-threshold", by: Requester, play: func(s *scene) {
		s.connectWith(private(1024, 2048, true), private(4096, 4096, true))
		s.small()
	}},
	{rule: "call-over-inline", by: Requester, with: []string{"small-inline-threshold"}, play: func(s *scene) {
		// Without the message of RFC 8797 the threshold is 1024 bytes.
		s.connectWith(private(4096, 4096, false), nil)
		h := s.next()
		s.send(client, message(h, rename3(h.XID)))
		s.send(server, message(answer(h), rename3Reply(h.XID)))
	}},
}

// nfs is a call of a procedure of NFS and its reply.
func (s *scene) nfs(version, procedure int, args, results []byte) {
	h := s.next()
	s.send(client, message(h, callOf(h.XID, nfsProgram, version, procedure, args)))
	s.send(server, message(answer(h), replyOf(h.XID, results)))
}

// attributes is a GETATTR of NFSv3 and what it says of the file id and the change time of one file.
func (s *scene) attributes(fileid uint64, seconds int) {
	s.nfs(3, 1, words("h"), words(0, 1, 0o644, 1, 0, 0, uint64(10), uint64(10), 0, 0, uint64(1), fileid, 9, 0, 9, 0, seconds, 0))
}

// integrity is a GETATTR with RPCSEC_GSS integrity: its body is an opaque and a
// checksum.
func (s *scene) integrity() {
	h := s.next()
	cred := words(1, 0, 7, 2, "ctx1")
	s.send(client, message(h, words(h.XID, 0, 2, nfsProgram, 3, 1, 6, string(cred), 6, "mic!", string(words(7, fh)), "checksum")))
	s.send(server, message(answer(h), words(h.XID, 1, 0, 6, "mic!", 0, string(words(7, 70)), "checksum")))
}

// recall has the server ask for a delegation; the part of the stateid that
// stays the same has 12 bytes.
func (s *scene) recall(delegation string, status int) {
	s.xid++
	h := &rpcrdma.Header{XID: 0x99000000 + s.xid, Version: rpcrdma.Version1, Credits: 2, Type: rpcrdma.TypeMsg}
	args := words("", 1, 0, 1, 4, 1, []byte(delegation), 0, fh)
	s.send(server, message(h, callOf(h.XID, callbackProgram, 1, 1, args)))
	r := answer(h)
	s.send(client, message(r, replyOf(h.XID, words(status, "", 1, 4, status))))
}

// giveBack is a DELEGRETURN.
func (s *scene) giveBack(delegation string, status int) {
	h := s.next()
	s.send(client, message(h, callOf(h.XID, nfsProgram, 4, 1, words("", 1, 1, 8, 1, []byte(delegation)))))
	s.send(server, message(answer(h), replyOf(h.XID, words(status, "", 1, 8, status))))
}

func refuse(h *rpcrdma.Header) []byte {
	return (&rpcrdma.Header{XID: h.XID, Version: h.Version, Credits: 16, Type: rpcrdma.TypeError, Error: rpcrdma.ErrChunk}).Append(nil)
}

// readRead is a READ of the read-read model; done is the time from the last
// Read to RDMA_DONE, which does not come if it is negative.
func (s *scene) readRead(done int64) {
	h := s.next()
	s.send(client, message(h, read3(h.XID, 2000)))
	r := answer(h)
	seg := rpcrdma.Segment{Handle: 0x8001, Offset: 0x10000, Length: 2000}
	rpc := read3Reply(h.XID, 2000)
	r.Reads = []rpcrdma.ReadSegment{{Position: uint32(len(rpc)), Segment: seg}}
	s.send(server, message(r, rpc))
	s.read(client, seg, make([]byte, 2000))
	if done >= 0 {
		s.wait(done)
		s.send(client, (&rpcrdma.Header{XID: h.XID, Version: 1, Credits: 32, Type: rpcrdma.TypeDone}).Append(nil))
		return
	}
	s.wait(3e9)
	s.small()
}

// readLengths is a READ whose reply says n in the message and chunk in the
// Write chunk.
func (s *scene) readLengths(count, chunk, n int) {
	h := s.next()
	seg := s.segment(uint32(count))
	h.Writes = []rpcrdma.WriteChunk{{seg}}
	s.send(client, message(h, read3(h.XID, count)))
	s.write(server, seg, make([]byte, chunk))
	r := answer(h)
	seg.Length = uint32(chunk)
	r.Writes = []rpcrdma.WriteChunk{{seg}}
	s.send(server, message(r, read3Reply(h.XID, n)))
}

// flood has n calls outstanding.
func (s *scene) flood(n int) {
	var calls []*rpcrdma.Header
	for range n {
		h := s.next()
		s.send(client, message(h, getattr(h.XID)))
		calls = append(calls, h)
	}
	for _, h := range calls {
		s.send(server, message(answer(h), failed(h.XID)))
	}
}

func (s *scene) two() { s.flood(2) }

// reducedName is a LOOKUP whose name, which is not eligible, is in a Read
// chunk.
func (s *scene) reducedName(refused bool) {
	h := s.next()
	seg := s.segment(200)
	rpc := callOf(h.XID, nfsProgram, 3, 3, words(fh, 200))
	h.Reads = []rpcrdma.ReadSegment{{Position: uint32(len(rpc)), Segment: seg}}
	s.send(client, message(h, rpc))
	s.read(server, seg, make([]byte, 200))
	if refused {
		s.send(server, message(answer(h), words(h.XID, 1, 0, 0, 0, 4)))
	} else {
		s.send(server, message(answer(h), replyOf(h.XID, words(2, 0))))
	}
}

// invalidated is a READ whose reply invalidates a handle.
func (s *scene) invalidated(handle func(rpcrdma.Segment) uint32) {
	h := s.next()
	seg := s.segment(1000)
	h.Writes = []rpcrdma.WriteChunk{{seg}}
	s.send(client, message(h, read3(h.XID, 1000)))
	s.write(server, seg, make([]byte, 1000))
	r := answer(h)
	r.Writes = h.Writes
	s.sendInvalidate(server, message(r, read3Reply(h.XID, 1000)), handle(seg))
}

// Each rule is broken once, and nothing else is found.
func TestBreaches(t *testing.T) {
	seen := make(map[string]bool)
	test := func(b *breach, connect bool) {
		t.Run(b.rule, func(t *testing.T) {
			seen[b.rule] = true
			r := b.scene(connect).run(b.profile)
			want := append([]string{b.rule}, b.with...)
			got := r.ids()
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
				for _, f := range r.findings {
					t.Log(describeFinding(f))
				}
				if n := r.check.Count(Lookup(b.rule)); n.Skipped() > 0 {
					t.Logf("not judged: %v", n.NotJudged)
				}
				return
			}
			for _, f := range r.findings {
				if f.Rule.ID != b.rule {
					continue
				}
				if f.By != b.by {
					t.Errorf("broken by %v, want %v", f.By, b.by)
				}
				from := map[Party]rdma.Side{Requester: client, Responder: server}[b.by]
				if f.Backward || b.by == Unknown {
					continue
				}
				if f.From.Addr != addr[from] || f.To.Addr != addr[from.Other()] {
					t.Errorf("from %v to %v", f.From, f.To)
				}
				if !f.Ref.Seen() || f.Expected == "" || f.Seen == "" || f.Connection == 0 {
					t.Errorf("incomplete: %+v", f)
				}
			}
		})
	}
	for i := range breaches {
		test(&breaches[i], true)
	}
	for i := range setupBreaches {
		test(&setupBreaches[i], false)
	}
	for i := range fabricBreaches {
		test(&fabricBreaches[i], false)
	}
	for id := range streamChanges { // TestChangedStream
		seen[id] = true
	}
	seen["mpa-marker-wrong"], seen["fpdu-over-segment"], seen["pause-storm"] = true, true, true // TestMarkers, TestFPDUOverSegment, TestPauseStorm
	for _, r := range Rules() {
		if !seen[r.ID] {
			t.Errorf("no test breaks %s", r.ID)
		}
	}
}

// copies starts asynchronous copies, and asks for the status of the last one until it has been answered complete a number of times.
func (s *scene) copies(started, complete int) {
	id := func(n int) []byte { return append(make([]byte, 15), byte(n)) }
	for n := range started {
		s.nfs(4, 1, words("", 2, 2, 22, "h", 60, id(n), id(n), uint64(0), uint64(0), uint64(9), 1, 0, 0),
			words(0, "", 2, 22, 0, 60, 0, 1, id(n), uint64(9), 2, uint64(0), 1, 0))
	}
	for range complete {
		s.nfs(4, 1, words("", 2, 1, 67, id(started-1)), words(0, "", 1, 67, 0, uint64(9), 1, 0))
	}
}

// TestPauseStorm: a priority that is stopped again and again, and not resumed, and one that is resumed in time.
func TestPauseStorm(t *testing.T) {
	var packets []capture.Packet
	frame := func(at int64, p link.Pause) {
		b := append([]byte{1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x08}, p.Append(nil)...)
		packets = append(packets, capture.Packet{Number: uint64(len(packets) + 1), Time: at, Link: capture.LinkEthernet, Data: b, Length: uint32(len(b))})
	}
	for i := range int64(400) {
		frame(i*300e3+1, link.Pause{PerPriority: true, Priorities: 1<<3 | 1<<5, Quanta: [8]uint16{3: 65535, 5: 65535 * uint16(1-i%2)}})
	}
	r := run(Options{Rules: All()}, packets)
	if len(r.findings) != 1 {
		t.Fatalf("%d findings", len(r.findings))
	}
	f := r.findings[0]
	if want := "priority 3 stopped for at least 120.0ms by 400 frames from 02:00:00:00:00:02"; f.Rule.ID != "pause-storm" || f.Seen != want || f.Ref.Number != 1 {
		t.Errorf("%s: %s in packet %d", f.Rule.ID, f.Seen, f.Ref.Number)
	}
	if n := r.check.Count(f.Rule); n.Judged != 2 {
		t.Errorf("judged %d times", n.Judged)
	}
}
