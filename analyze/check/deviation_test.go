package check

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// TestDeviations: what implementations without the private data of RFC 8797 are known to do is a warning that names them. The same is an
// error of others, if it is one, and what they are not known to do remains one.
func TestDeviations(t *testing.T) {
	long := func(n int) func(*scene, uint32) {
		return func(s *scene, grants uint32) {
			h := s.next()
			s.send(client, message(h, read3(h.XID, n)))
			r := answer(h)
			r.Credits = grants
			s.send(server, message(r, read3Inline(h.XID, n)))
		}
	}
	two := func(s *scene, grants uint32) {
		a, b := s.next(), s.next()
		s.send(client, message(a, getattr(a.XID)))
		s.send(client, message(b, getattr(b.XID)))
		for _, h := range []*rpcrdma.Header{a, b} {
			r := answer(h)
			r.Credits = grants
			s.send(server, message(r, failed(h.XID)))
		}
	}
	twice := func(s *scene, grants uint32) { two(s, grants); two(s, grants) }
	notReturned := func(s *scene, grants uint32) {
		h := s.next()
		h.HasReply, h.Reply = true, rpcrdma.WriteChunk{s.segment(4000)}
		s.send(client, message(h, getattr(h.XID)))
		r := answer(h)
		r.Credits = grants
		s.send(server, message(r, failed(h.XID)))
	}
	ignored := func(s *scene, grants uint32) {
		h := s.next()
		h.Writes = []rpcrdma.WriteChunk{{s.segment(500)}}
		s.send(client, message(h, read3(h.XID, 500)))
		r := answer(h)
		r.Credits = grants
		s.send(server, message(r, read3Inline(h.XID, 500)))
	}
	rename := func(s *scene, grants uint32) {
		h := s.next()
		s.send(client, message(h, rename3(h.XID)))
		r := answer(h)
		r.Credits = grants
		s.send(server, message(r, rename3Reply(h.XID)))
	}
	for _, c := range []struct {
		name         string
		asks, grants uint32
		depth        uint8
		play         func(*scene, uint32)
		rules        string // of the findings
		by           string // whose deviation; empty: errors
	}{
		{"calls before the first grant", 34, 32, 4, two, "calls-before-first-reply", "OpenSolaris"},
		{"a message that fits without its header", 34, 32, 4, long(960), "reply-over-inline", "OpenSolaris"},
		{"a message that does not fit", 34, 32, 4, long(1200), "reply-over-inline", ""},
		{"a Reply chunk left out", 34, 32, 4, notReturned, "reply-chunk-not-returned", "OpenSolaris"},
		{"a Reply chunk left out by another", 35, 31, 4, notReturned, "reply-chunk-not-returned", "RFC 5666 allows it"},
		{"Write chunks not used", 30, 30, 1, ignored, "write-list-changed", "ntirpc"},
		{"Write chunks not used by another", 30, 29, 2, ignored, "write-list-changed", ""},
		{"long replies in line", 30, 30, 1, long(3000), "reply-over-inline", "ntirpc"},
		{"long calls in line", 30, 30, 1, rename, "call-over-inline", "ntirpc"},
		{"no credits", 128, 0, 4, long(10), "zero-grant", "libevpl"},
		{"no credits of ntirpc", 128, 0, 1, long(10), "zero-grant", ""},
		{"calls are not counted", 1, 1, 4, twice, "calls-before-first-reply credits-exceeded", "libevpl"},
		{"calls are not counted by another", 2, 1, 4, twice, "calls-before-first-reply credits-exceeded", ""},
		{"the Read-Read model", 35, 31, 4, func(s *scene, _ uint32) { s.readRead(0) }, "requester-initiated-rdma done-used reply-with-read-list", "RFC 5666 allows it"},
	} {
		for _, profile := range []Profile{RFC8166, Linux} {
			s := newScene()
			s.depth, s.asks = c.depth, c.asks
			s.connectWith(nil, nil)
			c.play(s, c.grants)
			r := s.run(profile)
			found := make(map[string]bool)
			for _, f := range r.findings {
				if f.Rule.Severity[profile] == Note {
					continue
				}
				found[f.Rule.ID] = true
				want := f.Rule.Severity[profile]
				switch {
				case c.by != "" && profile == Linux:
					want = Note
				case c.by != "":
					want = Warning
				}
				if f.Severity != want || (f.Known == "") != (c.by == "") || !strings.Contains(f.Known, c.by) {
					t.Errorf("%s: %s is known as %q: %s", c.name, f.Severity, f.Known, describeFinding(f))
				}
			}
			for _, id := range strings.Fields(c.rules) {
				if !found[id] {
					t.Errorf("%s: no %s", c.name, id)
				}
				delete(found, id)
			}
			if len(found) > 0 {
				t.Errorf("%s: also %v", c.name, found)
			}
		}
	}
}
