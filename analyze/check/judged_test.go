package check

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// cutCall is a READ of whose call n bytes were captured.
func cutCall(n int) func() *scene {
	return func() *scene {
		s := newScene()
		s.connect()
		s.small()
		at := len(s.recs)
		s.readData(3000, nil)
		s.recs[at].Cut = n
		s.small()
		return s
	}
}

// What cannot be judged gives no finding, and says why.
func TestNotJudged(t *testing.T) {
	play := func(rule string) func(*scene) {
		for i := range breaches {
			if breaches[i].rule == rule {
				return breaches[i].play
			}
		}
		t.Fatalf("no breach of %s", rule)
		return nil
	}
	for _, test := range []struct {
		rule string
		why  Reason
		make func() *scene
	}{
		{"call-over-inline", NoSetup, func() *scene {
			s := newScene()
			play("call-over-inline")(s)
			return s
		}},
		{"invalidate-not-offered", NoSetup, func() *scene {
			s := newScene()
			play("invalidate-foreign-handle")(s)
			return s
		}},
		{"nomsg-reply-without-reply-chunk", NoCall, func() *scene {
			s := newScene()
			s.connect()
			s.small()
			at := len(s.recs)
			s.longReply(nil)
			s.recs = append(s.recs[:at:at], s.recs[at+2:]...) // call and its acknowledgement
			return s
		}},
		{"chunk-bytes-missing", Gaps, func() *scene {
			s := newScene()
			s.connect()
			s.small()
			at := len(s.recs)
			s.readData(3000, nil)
			s.recs = append(s.recs[:at+3:at+3], s.recs[at+4:]...) // a packet of the Write
			return s
		}},
		{"access-not-offered", MidStream, func() *scene {
			s := newScene()
			s.small()
			play("access-not-offered")(s)
			return s
		}},
		{"access-not-offered", Gaps, func() *scene {
			s := newScene()
			s.connect()
			s.small()
			at := len(s.recs)
			s.readData(3000, nil)
			s.recs = append(s.recs[:at:at], s.recs[at+2:]...) // the call
			s.small()
			return s
		}},
		{"access-not-offered", Cut, cutCall(24)}, // within its Write list
		{"access-not-offered", Cut, cutCall(2)},  // within its XID
		{"chunk-bytes-missing", Ambiguous, func() *scene {
			s := newScene()
			s.connect()
			s.small()
			play("chunk-bytes-missing")(s)
			var both []rocetest.Record
			for _, r := range s.recs {
				far := r
				far.Tap, far.Time = 1, r.Time+500
				both = append(both, r, far)
			}
			s.recs = both
			return s
		}},
		{"call-unanswered", NotAcked, func() *scene {
			s := newScene()
			s.connect()
			s.small()
			h := s.next()
			s.send(client, message(h, getattr(h.XID)))
			return s
		}},
		{"result-not-eligible", Protected, func() *scene {
			s := newScene()
			s.connect()
			play("protected-body-reduced")(s)
			return s
		}},
		{"argument-not-eligible", Undecodable, func() *scene {
			// A COMPOUND with an operation that does not exist before the WRITE.
			s := newScene()
			s.connect()
			s.small()
			h := s.next()
			seg := s.segment(500)
			rpc := callOf(h.XID, nfsProgram, 4, 1, words("", 1, 3, 24, 9999, 38, make([]byte, 16), uint64(0), 2, 500))
			h.Reads = []rpcrdma.ReadSegment{{Position: uint32(len(rpc)), Segment: seg}}
			s.send(client, message(h, rpc))
			s.read(server, seg, make([]byte, 500))
			s.send(server, message(answer(h), replyOf(h.XID, words(10044, "", 0))))
			return s
		}},
		{"header-malformed", Cut, func() *scene {
			s := newScene()
			s.connect()
			s.small()
			play("header-malformed")(s)
			for i := range s.recs {
				if i > len(s.recs)-3 {
					s.recs[i].Cut = 12
				}
			}
			return s
		}},
	} {
		t.Run(test.rule+" "+test.why.String(), func(t *testing.T) {
			r := test.make().run(RFC8166)
			n := r.check.Count(Lookup(test.rule))
			if n.NotJudged[test.why] == 0 || n.Found > 0 {
				t.Errorf("found %d, not judged %v", n.Found, n.NotJudged)
				for _, f := range r.findings {
					t.Log(describeFinding(f))
				}
			}
		})
	}
}

// Rules that are not selected find nothing and count nothing.
func TestOnlySelected(t *testing.T) {
	s := newScene()
	s.connect()
	s.flood(20)
	sel, err := Select("zero-grant")
	if err != nil {
		t.Fatal(err)
	}
	r := run(Options{Rules: sel}, s.frames())
	if len(r.findings) != 0 || r.check.Count(Lookup("credits-exceeded")).Judged != 0 || r.check.Count(Lookup("zero-grant")).Judged != 20 {
		t.Errorf("%v, %+v", r.ids(), r.check.Count(Lookup("zero-grant")))
	}
}

// With a filter only findings about matching transactions are left.
func TestMatch(t *testing.T) {
	s := newScene()
	s.connect()
	s.small()
	s.readLengths(1500, 1500, 1200)
	s.read(server, segmentAt(0xbad, 0x1000), make([]byte, 100))
	s.small()
	match := func(want bool) func(*rpc.View) bool {
		return func(v *rpc.View) bool { return (v.ProcedureName() == "READ") == want }
	}
	r := run(Options{Rules: All(), Match: match(true)}, s.frames())
	if got := r.ids(); len(got) != 1 || got[0] != "write-chunk-not-one-item" {
		t.Errorf("READ: %v", got)
	}
	if r = run(Options{Rules: All(), Match: match(false)}, s.frames()); len(r.findings) != 0 {
		t.Errorf("others: %v", r.ids())
	}
}

// In the profile of Linux, what Linux is known to do is a note.
func TestKnown(t *testing.T) {
	for i := range append(breaches, setupBreaches...) {
		b := append(breaches, setupBreaches...)[i]
		s := b.scene(i < len(breaches))
		for p := range Profiles {
			for _, f := range s.run(Profile(p)).findings {
				if f.Known != "" && (Profile(p) == Linux) != (f.Severity == Note) && f.Rule.Severity[p] != Note {
					t.Errorf("%s in %v: %v", f.Rule.ID, Profile(p), f.Severity)
				}
				if f.Known != "" && f.Known != f.Rule.Known {
					t.Errorf("%s: known %q", f.Rule.ID, f.Known)
				}
			}
		}
	}
}

// Random bytes in place of packets, and random changes of packets, do no harm.
