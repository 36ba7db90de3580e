package check

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

const testSession = "a session of 16 "

// sessionCallback is an empty COMPOUND of the backchannel.
func (s *scene) sessionCallback() {
	s.xid++
	h := &rpcrdma.Header{XID: 0x99000000 + s.xid, Version: rpcrdma.Version1, Credits: 2, Type: rpcrdma.TypeMsg}
	s.send(server, message(h, callOf(h.XID, callbackProgram, 1, 1, words("", 1, 0, 1, 11, []byte(testSession), 1, 0, 0, 0, 0))))
	r := answer(h)
	r.Credits = 16
	s.send(client, message(r, replyOf(h.XID, words(0, "", 1, 11, 0, []byte(testSession), 1, 0, 0, 0))))
}

// createSession makes a session with flags as the server grants them.
func (s *scene) createSession(flags int) {
	attrs := words(0, 4096, 4096, 1024, 8, 16, 0)
	h := s.next()
	s.send(client, message(h, callOf(h.XID, nfsProgram, 4, 1, words("", 1, 1, 43, uint64(7), 1, 2, attrs, attrs, callbackProgram, 1, 0))))
	s.send(server, message(answer(h), replyOf(h.XID, words(0, "", 1, 43, 0, []byte(testSession), 1, flags, attrs, attrs))))
}

// bind binds the connection to the session, for as much as the server grants.
func (s *scene) bind(direction int) {
	h := s.next()
	s.send(client, message(h, callOf(h.XID, nfsProgram, 4, 1, words("", 1, 1, 41, []byte(testSession), 7, 0))))
	s.send(server, message(answer(h), replyOf(h.XID, words(0, "", 1, 41, 0, []byte(testSession), direction, 0))))
}

// Which connections may carry callbacks.
func TestCallbackBound(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*scene)
		want int
	}{
		{"created with a backchannel", func(s *scene) { s.createSession(2); s.sessionCallback() }, 0},
		{"created without", func(s *scene) { s.createSession(0); s.sessionCallback() }, 1},
		{"bound to both", func(s *scene) { s.bind(3); s.sessionCallback(); s.sessionCallback() }, 0},
		{"bound to the backchannel behind the callback", func(s *scene) { s.sessionCallback(); s.bind(2) }, 0},
		{"bound to the fore channel", func(s *scene) { s.bind(1); s.sessionCallback() }, 1},
		{"setup not captured", func(s *scene) { s.sessionCallback(); s.recs = s.recs[3:] }, 0},
		{"a packet before it is missing", func(s *scene) {
			s.small()
			n := len(s.recs)
			s.bind(3)
			s.sessionCallback()
			s.recs = append(s.recs[:n:n], s.recs[n+4:]...)
		}, 0},
	} {
		s := newScene()
		s.connect()
		c.play(s)
		r := s.run(RFC8166)
		if n := r.check.Count(Lookup("callback-unbound")).Found; n != uint64(c.want) {
			t.Errorf("%s: %d findings: %v", c.name, n, r.ids())
		}
	}
}

// unanswered sends calls with a Reply chunk.
func (s *scene) unanswered(n int) {
	for range n {
		h := s.next()
		h.HasReply, h.Reply = true, rpcrdma.WriteChunk{s.segment(10000)}
		s.send(client, message(h, readdir3(h.XID)))
	}
}

// Calls of one form are only conspicuous if all stay unanswered, and others do not.
func TestOneForm(t *testing.T) {
	for name, play := range map[string]func(*scene){
		"one is answered":         func(s *scene) { s.small(); s.longReply(nil); s.unanswered(2); s.disconnect(server) },
		"only one":                func(s *scene) { s.small(); s.unanswered(1); s.disconnect(server) },
		"nothing else":            func(s *scene) { s.unanswered(3); s.disconnect(server) },
		"the capture ends before": func(s *scene) { s.small(); s.unanswered(2) },
	} {
		s := newScene()
		s.connect()
		play(s)
		if r := s.run(RFC8166); slices.Contains(r.ids(), "form-unanswered") {
			t.Errorf("%s: %v", name, r.ids())
		}
	}
}

// notReadyFor has the second of five Sends refused, and that and those behind it sent again, up to n.
func (s *scene) notReadyFor(n int) {
	s.strange()
	s.bare(client, 5)
	s.answerTo(server, 3, roce.RNR(1), 1)
	s.wait(1e6)
	s.back(client, 4)
	s.bare(client, n)
	s.answerTo(server, 0, roce.ACKUnlimited, 1+uint32(n))
	s.wait(1e9)
	s.disconnect(client)
}

// A requester that goes on behind an RNR NAK, one of which that is not known, and one that never sent it again.
func TestResumed(t *testing.T) {
	for name, play := range map[string]func(*scene){
		"all again":  func(s *scene) { s.notReadyFor(4) },
		"none again": func(s *scene) { s.notReadyFor(0) },
		"the rest acknowledged": func(s *scene) {
			s.strange()
			s.bare(client, 5)
			s.answerTo(server, 3, roce.RNR(1), 1)
			s.wait(1e6)
			s.back(client, 4)
			s.bare(client, 1)
			s.last[client] += 3
			s.answerTo(server, 0, roce.ACKUnlimited, 5)
			s.wait(1e9)
			s.disconnect(client)
		},
		"too early to tell": func(s *scene) {
			s.strange()
			s.bare(client, 5)
			s.answerTo(server, 3, roce.RNR(1), 1)
			s.back(client, 4)
			s.bare(client, 1)
		},
	} {
		s := newScene()
		play(s)
		if r := s.run(RFC8166); slices.Contains(r.ids(), "rest-not-resent") {
			t.Errorf("%s: %v", name, r.ids())
		}
	}
}

// What looks like a PSN that is used again, or an acknowledgement of one that was never sent, and is not.
func TestNotReused(t *testing.T) {
	for name, play := range map[string]func(*scene){
		"a Read asked for again, from its middle on": func(s *scene) {
			seg := memoryAt(0x100, 3000)
			s.readRequest(server, seg)
			s.wait(5e6)
			p := s.request(server, roce.RCReadRequest, nil)
			p.RETH = roce.RETHFields{VA: seg.Offset + 2*mtu, RKey: seg.Handle, DMALen: seg.Length - 2*mtu}
			p.PSN++
		},
		"a Send sent again": func(s *scene) { s.bare(client, 3); s.back(client, 2); s.bare(client, 2) },
		"the capture lacks requests": func(s *scene) {
			s.bare(client, 2)
			for i := range uint32(3) {
				s.last[client] += 1000 * i
				s.answerTo(server, 0, roce.ACKUnlimited, 2+1000*i)
			}
		},
		"an old acknowledgement": func(s *scene) { s.bare(client, 9); s.ack(server); s.answerTo(server, 8, roce.ACKUnlimited, 1) },
	} {
		s := newScene()
		s.strange()
		play(s)
		r := s.run(RFC8166)
		for _, id := range [...]string{"psn-reused", "ack-never-sent"} {
			if slices.Contains(r.ids(), id) {
				t.Errorf("%s: %v", name, r.ids())
			}
		}
	}
}

// What a call asks for, and what it offers.
func TestReplyRoom(t *testing.T) {
	reply := func(n uint32) func(s *scene, h *rpcrdma.Header) {
		return func(s *scene, h *rpcrdma.Header) { h.HasReply, h.Reply = true, rpcrdma.WriteChunk{s.segment(n)} }
	}
	nothing := func(*scene, *rpcrdma.Header) {}
	getattr4 := func(words0, words1 int) func(uint32) []byte {
		return func(xid uint32) []byte {
			return callOf(xid, nfsProgram, 4, 1, words("", 0, 2, 22, fh, 9, 2, words0, words1))
		}
	}
	for _, c := range []struct {
		name  string
		call  func(xid uint32) []byte
		offer func(*scene, *rpcrdma.Header)
		want  bool // the requester's fault
	}{
		{"READDIR, nothing offered", readdir3, nothing, true},
		{"READDIR, too little", readdir3, reply(512), true},
		{"READDIR, without room for the header", readdir3, reply(8192), true},
		{"READDIR, enough", readdir3, reply(8192 + replyHeader), false},
		{"READ inline", func(xid uint32) []byte { return read3(xid, 8000) }, nothing, true},
		{"READ into a Write chunk", func(xid uint32) []byte { return read3(xid, 8000) }, func(s *scene, h *rpcrdma.Header) {
			h.Writes = []rpcrdma.WriteChunk{{s.segment(8000)}}
		}, false},
		{"short READ inline", func(xid uint32) []byte { return read3(xid, 800) }, nothing, false},
		{"GETATTR of an ACL", getattr4(1<<12, 0), nothing, true},
		{"GETATTR of the type", getattr4(1<<1, 0), nothing, false},
	} {
		s := newScene()
		s.connect()
		h := s.next()
		c.offer(s, h)
		s.send(client, message(h, c.call(h.XID)))
		s.send(server, refuse(h))
		r := s.run(RFC8166)
		if got, other := slices.Contains(r.ids(), "reply-room-too-small"), slices.Contains(r.ids(), "chunks-refused"); got != c.want || other == got {
			t.Errorf("%s: %v", c.name, r.ids())
		}
	}
}
