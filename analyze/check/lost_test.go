package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// long is a conversation that breaks no rule.
func long() *scene {
	s := newScene()
	for range 2 {
		s.connect()
		for i := range 12 {
			s.small()
			s.readData(3000+i, nil)
			s.writeData(4000+4*i, nil)
			s.longReply(nil)
			s.longCall(nil)
			s.callback(nil)
			s.invalidated(func(seg rpcrdma.Segment) uint32 { return seg.Handle })
		}
		s.flood(16)
		s.disconnect(client)
		s.again()
		s.wait(1e6)
	}
	return s
}

// What the capture lacks is nobody's fault: a capture of a conversation in
// order gives no warning and no error, whatever packets are missing from it,
// cut, or come from another place.
func TestIncompleteCapture(t *testing.T) {
	all := long().recs
	none := func(t *testing.T, name string, recs []rocetest.Record) {
		t.Helper()
		s := &scene{recs: recs}
		for _, f := range s.run(RFC8166).findings {
			if f.Severity > Note {
				t.Fatalf("%s:\n%s", name, describeFinding(f))
			}
		}
	}
	none(t, "whole", all)
	for seed := range uint64(sampled.Rounds(120)) {
		burst := 1 + int(seed)%7
		p := []float64{0.002, 0.01, 0.05, 0.3}[seed%4]
		none(t, fmt.Sprintf("seed %d, burst %d, %g lost", seed, burst, p), rocetest.Drop(all, seed, p, burst))
	}
	few := sampled.Rounds(60) // those of -short are as far apart as all
	for n := range few {
		n *= 60 / few
		none(t, fmt.Sprintf("without the first %d", n*7), all[n*7:])
		none(t, fmt.Sprintf("without the last %d", n*7), all[:len(all)-n*7])
	}
	for n := range 20 {
		cut := make([]rocetest.Record, len(all))
		for i := range all {
			cut[i] = all[i]
			cut[i].Cut = n * 16
		}
		none(t, fmt.Sprintf("cut at %d", n*16), cut)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range sampled.Rounds(20) {
		twice := make([]rocetest.Record, 0, 2*len(all))
		for _, r := range all {
			twice = append(twice, r)
			if rng.IntN(3) == 0 {
				twice = append(twice, r)
			}
		}
		none(t, "with copies", twice)
	}
	one := rocetest.Only(all, func(r *rocetest.Record) bool { return r.Packet.From == client })
	none(t, "one direction", one)
	one = rocetest.Only(all, func(r *rocetest.Record) bool { return r.Packet.From == server })
	none(t, "the other direction", one)
}

// Traffic of the model obeys the rules of memory and of the fabric, whatever
// the network loses and repeats.
func TestModelTraffic(t *testing.T) {
	var names string
	for _, r := range Rules() {
		switch {
		case r.Needs&(NeedArguments|NeedSetup) != 0:
		case r.ID == "rnr-nak", r.ID == "credits-exceeded", r.ID == "calls-before-first-reply":
			// The model gives as many as it likes.
		case r.ID == "chunks-refused", r.ID == "call-unanswered", r.ID == "reply-chunk-not-returned":
			// It has calls that are refused or not answered.
		case r.ID == "write-list-changed", r.ID == "msg-without-message", r.ID == "write-segments-changed":
		case r.Severity[RFC8166] == Note || r.ID == "bad-crc":
		default:
			names += "," + r.ID
		}
	}
	rules, err := Select(names[1:])
	if err != nil {
		t.Fatal(err)
	}
	judged := make(map[string]uint64)
	for seed := range uint64(40) {
		c := rocetest.Config{
			Seed: seed, Connections: 1 + int(seed%3), Calls: 30, Outstanding: 1 + int(seed%5), Callbacks: int(seed % 4),
			CM: seed%2 == 0, Segment: 3000, Rename: seed%5 == 0, MTU: 1024, XIDInOffset: seed%3 == 0, Invalidate: false,
		}
		if seed%3 > 0 {
			c.Loss = rocetest.Loss{Near: 0.01, Middle: 0.01, Far: 0.01, Copied: 0.01, Late: 0.01, AckLost: 0.02}
		}
		traffic := rocetest.Make(c)
		for tap, recs := range traffic.Taps {
			if seed%4 == 3 {
				recs = rocetest.Drop(recs, seed, 0.01, 3)
			}
			r := run(Options{Rules: rules}, rocetest.Frames(recs))
			for _, f := range r.findings {
				t.Fatalf("seed %d, tap %d:\n%s", seed, tap, describeFinding(f))
			}
			for _, rule := range Rules() {
				judged[rule.ID] += r.check.Count(rule).Judged
			}
		}
	}
	for _, id := range []string{"opcode-sequence", "first-not-mtu", "rdma-length", "access-beyond-segment", "chunk-bytes-missing"} {
		if judged[id] == 0 {
			t.Errorf("%s was never judged", id)
		}
	}
}

// A capture that has single packets in the wrong place, or twice, gives no warning
// and no error either.
func TestReorderedCapture(t *testing.T) {
	all := long().recs
	none := func(name string, recs []rocetest.Record) {
		t.Helper()
		for i := range recs {
			recs[i].Time = all[min(i, len(all)-1)].Time
		}
		for _, f := range (&scene{recs: recs}).run(RFC8166).findings {
			if f.Severity > Note {
				t.Errorf("%s:\n%s", name, describeFinding(f))
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range sampled.Rounds(200) {
		i, by := rng.IntN(len(all)), 1+rng.IntN(5)
		moved := slices.Delete(slices.Clone(all), i, i+1)
		none(fmt.Sprintf("packet %d by %d", i+1, by), slices.Insert(moved, min(i+by, len(moved)), all[i]))
		none(fmt.Sprintf("packet %d twice", i+1), slices.Insert(slices.Clone(all), i, all[i]))
	}
}

// A reply that the capture has after the next call, although its acknowledgement came before, did not come
// late.
func TestReplyBehindNextCall(t *testing.T) {
	for by := 2; by < 5; by++ {
		s := newScene()
		s.connect()
		k := len(s.recs) + 2 // call, ACK, reply, ACK
		s.small()
		s.small()
		s.disconnect(client)
		reply := s.recs[k]
		reply.Time = s.recs[k+by].Time
		s.recs = slices.Insert(slices.Delete(s.recs, k, k+1), k+by, reply)
		r := s.run(RFC8166)
		if ids := r.ids(); slices.Contains(ids, "calls-before-first-reply") {
			t.Errorf("by %d: %v", by, ids)
		}
		if n := r.check.Count(Lookup("calls-before-first-reply")); n.NotJudged[Gaps] == 0 {
			t.Errorf("by %d: not judged: %v", by, n.NotJudged)
		}
	}
}
