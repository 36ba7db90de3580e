package check

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// oddities change one packet of a usual conversation: number at of its records.
var oddities = map[string]func(s *scene, at int){
	"nothing":   func(*scene, int) {},
	"DSCP":      func(s *scene, at int) { s.edit(at).DSCP = 26 },
	"ECN 2":     func(s *scene, at int) { s.edit(at).ECN = 2 },
	"marked":    func(s *scene, at int) { s.edit(at).ECN = 3 },
	"priority":  func(s *scene, at int) { s.edit(at).Priority = 3 },
	"tap":       func(s *scene, at int) { s.recs[at].Tap = 1 },
	"cut":       func(s *scene, at int) { s.recs[at].Cut = 8 },
	"PSN ahead": func(s *scene, at int) { s.edit(at).PSN++ },
	"PSN far":   func(s *scene, at int) { s.edit(at).PSN += 70 },
	"PSN back":  func(s *scene, at int) { s.edit(at).PSN-- },
	"PSN older": func(s *scene, at int) { s.edit(at).PSN -= 70 },
	"MSN":       func(s *scene, at int) { s.edit(at).AETH.MSN++ },
	"NAK":       func(s *scene, at int) { s.edit(at).AETH.Syndrome = roce.NAKPSNSequence },
	"RNR":       func(s *scene, at int) { s.edit(at).AETH.Syndrome = 0x21 },
	"limited":   func(s *scene, at int) { s.edit(at).AETH.Syndrome = 0 },
	"opcode":    func(s *scene, at int) { s.edit(at).Opcode = roce.RCSendFirst },
	"ask":       func(s *scene, at int) { s.edit(at).AckReq = false },
	"too long": func(s *scene, at int) {
		p := s.edit(at)
		if p.PayloadLen > 0 {
			p.Payload = append(slices.Clone(p.Payload), make([]byte, 2000)...)
			p.PayloadLen = len(p.Payload)
		}
	},
	"late": func(s *scene, at int) {
		for i := at; i < len(s.recs); i++ {
			s.recs[i].Time += 20e9
		}
	},
	"damaged": func(s *scene, at int) { s.spoil[at] = true },
	"lost":    func(s *scene, at int) { s.recs = slices.Delete(s.recs, at, at+1) },
	"twice":   func(s *scene, at int) { s.recs = slices.Insert(s.recs, at, s.recs[at]) },
	"swapped": func(s *scene, at int) {
		s.recs[at].Packet, s.recs[at+1].Packet = s.recs[at+1].Packet, s.recs[at].Packet
	},
}

// edit returns the packet of a record, to be changed.
func (s *scene) edit(at int) *rocetest.Packet { return s.recs[at].Packet }

// alike compares what is found, counted and known whether each rule judges all, or what is usual takes one step.
func alike(t *testing.T, s *scene) {
	t.Helper()
	var said [2]string
	for i, inFull := range [...]bool{false, true} {
		r := runBy(Options{Rules: All()}, s.frames(), inFull)
		for _, f := range r.findings {
			said[i] += describeFinding(f) + "\n"
		}
		for _, rule := range Rules() {
			said[i] += fmt.Sprintf("%s %+v\n", rule.ID, *r.check.Count(rule))
		}
		said[i] += fmt.Sprint(r.known)
	}
	if said[0] != said[1] {
		t.Errorf("in one step\n%s\nby each rule\n%s", said[0], said[1])
	}
}

// TestCalm: a packet that is not the one expected is judged as if none had been.
func TestCalm(t *testing.T) {
	const before, after = 20, 12
	for _, connect := range [...]bool{true, false} {
		for name, change := range oddities {
			for at := range 4 { // call, acknowledgement, reply, acknowledgement
				t.Run(fmt.Sprintf("%s/%d/%v", name, at, connect), func(t *testing.T) {
					s := newScene()
					if connect {
						s.connect()
					}
					for range before {
						s.small()
					}
					place := len(s.recs) + at
					for range after {
						s.small()
					}
					change(s, place)
					if connect {
						s.disconnect(client)
					}
					alike(t, s)
				})
			}
		}
	}
	for i, list := range [...][]breach{breaches, fabricBreaches} {
		for j := range list {
			t.Run(fmt.Sprintf("breach/%d/%s/%d", i, list[j].rule, j), func(t *testing.T) {
				s := newScene()
				s.connect()
				for range before {
					s.small()
				}
				list[j].play(s)
				for range after {
					s.small()
				}
				alike(t, s)
			})
		}
	}
}

// TestCalmCredits: credits are followed while nothing unusual comes; and acknowledgements of many messages at once.
func TestCalmCredits(t *testing.T) {
	for _, credits := range [...]roce.Syndrome{0, 1, 2, 5, roce.ACKUnlimited} {
		for _, burst := range [...]int{1, 3, 63, 64, 65, 100} {
			s := newScene()
			s.connect()
			for round := range 30 {
				n := 1
				if round > 15 {
					n = burst
				}
				s.bare(client, n)
				s.answerTo(server, uint32(n-1), credits, s.msn[client]-uint32(n-1))
				s.answerTo(server, 0, credits, s.msn[client])
				s.answerTo(server, uint32(round%3), credits, s.msn[client])
				if round%4 == 3 { // overtaken
					s.answerTo(server, uint32(n-1), credits, s.msn[client]-uint32(n-1))
				}
			}
			alike(t, s)
		}
	}
}

// TestNoted: what is expected is not shown, until something that has to wait for the packets to come.
func TestNoted(t *testing.T) {
	const rounds = 100
	s := newScene()
	s.connect()
	for range rounds {
		s.small()
	}
	c := New(Options{Rules: All()}, func(*Finding) {})
	shown := 0
	o := c.Observer()
	o.Ordinary = func(v *decode.OrdinaryView) {
		shown++
		c.Ordinary(v)
	}
	var v rpc.View
	d := decode.New(decode.Options{Observers: []decode.Observer{o}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		c.Transaction(&v)
	})
	packets := s.frames()
	d.Batch(&capture.Batch{Packets: packets[:len(packets)-8]})
	if most := 4 * 3 * longEnough; shown > most {
		t.Errorf("%d of %d packets were shown, want %d at most", shown, len(packets), most)
	}
	if last := packets[len(packets)-9]; c.seen.Latest.Number != last.Number || c.seen.Latest.Time != last.Time {
		t.Errorf("the latest packet is %v, want %d", c.seen.Latest, last.Number)
	}
	shown, c.seen.Each = 0, true
	c.doubts = append(c.doubts, c.last)
	c.last.suspects = make([]suspect, 1, maxSuspects)
	c.last.suspects[0].known = false // it is never known
	d.Batch(&capture.Batch{Packets: packets[len(packets)-8:]})
	if shown != 8 {
		t.Errorf("%d of 8 packets were shown", shown)
	}
}

// TestCalmPending: what has to wait for the packet at hand does not wait for longer, even if it is expected: a packet that is lost later makes
// no difference.
func TestCalmPending(t *testing.T) {
	for _, rule := range [...]string{"xid-reused", "access-not-offered", "reply-repeated"} {
		at := slices.IndexFunc(breaches, func(b breach) bool { return b.rule == rule })
		for lost := range 12 {
			s := newScene()
			s.connect()
			for range 20 {
				s.small()
			}
			breaches[at].play(s)
			place := len(s.recs) - 3 + lost
			for range 12 {
				s.small()
			}
			s.recs = slices.Delete(s.recs, place, place+1)
			alike(t, s)
		}
		s := newScene()
		s.connect()
		for _, rule := range [...]string{"", rule, "xid-reused", "zero-grant"} { // each found before the next
			if at := slices.IndexFunc(breaches, func(b breach) bool { return b.rule == rule }); at >= 0 {
				breaches[at].play(s)
			}
			for range 40 {
				s.small()
			}
		}
		alike(t, s)
	}
}

// TestCalmAhead: a usual call shows that a reply came before it, and was not another one to the call before.
func TestCalmAhead(t *testing.T) {
	s := newScene()
	s.connect()
	for range 20 {
		s.small()
	}
	breaches[slices.IndexFunc(breaches, func(b breach) bool { return b.rule == "reply-repeated" })].play(s)
	s.xid-- // used again
	for range 30 {
		s.small()
	}
	alike(t, s)
	if n := s.run(RFC8166).check.Count(Lookup("reply-repeated")); n.NotJudged[Reordered] != 1 || n.Found != 0 {
		t.Errorf("found %d, not judged %v", n.Found, n.NotJudged)
	}
}

// TestCalmGaps: what the capture lacked before a usual call does not count against it.
func TestCalmGaps(t *testing.T) {
	s := newScene()
	s.connect()
	for range 20 {
		s.small()
	}
	s.recs = slices.Delete(s.recs, len(s.recs)-20, len(s.recs)-19)
	for range 40 {
		s.small()
	}
	breaches[slices.IndexFunc(breaches, func(b breach) bool { return b.rule == "xid-reused" })].play(s)
	for range 20 {
		s.small()
	}
	alike(t, s)
	if n := s.run(RFC8166).check.Count(Lookup("xid-reused")); n.Found != 1 {
		t.Errorf("found %d, not judged %v", n.Found, n.NotJudged)
	}
}
