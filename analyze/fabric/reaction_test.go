package fabric_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// TestReaction: a sender halves its rate for 100 µs after a CNP.
func TestReaction(t *testing.T) {
	s := newScene(fabric.Options{})
	psn := uint32(0)
	packet := func(us float64) {
		s.at(us, 0, roce.RCSendOnly, psn, 1000)
		psn++
	}
	for us := 0.0; us < 1000; us += 10 {
		packet(us)
	}
	s.at(1000, 1, roce.CNP, 0, 0)
	for us := 1020.0; us <= 1131; us += 20 {
		packet(us)
	}
	for us := 1140.0; us <= 2024; us += 10 {
		packet(us)
	}
	r := s.done().Congestion.Reaction
	rate := func(from int64) float64 {
		i := slices.IndexFunc(r, func(x fabric.Rate) bool { return x.From == from })
		if i < 0 {
			t.Fatalf("%d: %+v", from, r)
		}
		return r[i].Rate
	}
	if x := rate(-1); x < 95e6 || x > 110e6 {
		t.Errorf("before the CNP %.0f", x)
	}
	if x := rate(32768); x < 40e6 || x > 70e6 {
		t.Errorf("33 µs after it %.0f", x)
	}
	if x := rate(262144); x < 95e6 || x > 110e6 {
		t.Errorf("262 µs after it %.0f", x)
	}
}

func TestPauses(t *testing.T) {
	rec := fabric.New(fabric.Options{})
	at := func(us int64) rdma.Ref { return rdma.Ref{Time: us * 1000, Number: uint64(us) + 1} }
	rec.Paused(&rdma.Pause{PerPriority: true, Priorities: 1<<3 | 1<<4, Quanta: [8]uint16{3: 65535}, From: [6]byte{2, 5: 1}}, at(10)) // 4 resumes
	rec.Paused(&rdma.Pause{PerPriority: true, Priorities: 1 << 3, Quanta: [8]uint16{3: 65535}, From: [6]byte{2, 5: 1}}, at(20))
	rec.Paused(&rdma.Pause{PerPriority: true, Priorities: 1 << 3, From: [6]byte{2, 5: 2}}, at(35))
	rec.Paused(&rdma.Pause{Priorities: 0xff, Quanta: [8]uint16{5, 5, 5, 5, 5, 5, 5, 5}}, at(40))
	r := rec.Report(nil)
	want := []fabric.Pause{
		{Priority: 3, Stops: 2, Resumes: 1, Quanta: 131070, Stopped: 25000, Senders: []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}},
		{Priority: 4, Resumes: 1, Senders: []string{"02:00:00:00:00:01"}}, {Priority: -1, Stops: 1, Quanta: 5, Senders: []string{}},
	}
	if !reflect.DeepEqual(r.Congestion.Pauses, want) {
		t.Errorf("%+v", r.Congestion.Pauses)
	}
	if r.Series.Intervals[0].Pauses != 3 {
		t.Errorf("%+v", r.Series)
	}
}

// TestPauseExpires: a stop that no resume follows ends by itself, after 34 ms at the latest (1 Gb/s).
func TestPauseExpires(t *testing.T) {
	rec := fabric.New(fabric.Options{})
	at := func(us int64) rdma.Ref { return rdma.Ref{Time: us * 1000, Number: uint64(us) + 1} }
	stop, resume := &rdma.Pause{PerPriority: true, Priorities: 1 << 3, Quanta: [8]uint16{3: 65535}}, &rdma.Pause{PerPriority: true, Priorities: 1 << 3}
	rec.Paused(stop, at(10))
	rec.Paused(stop, at(10_000_000))
	rec.Paused(resume, at(10_000_100))
	rec.Paused(stop, at(20_000_000))
	rec.Paused(resume, at(29_000_000))
	want := []fabric.Pause{{Priority: 3, Stops: 3, Resumes: 2, Quanta: 3 * 65535, Stopped: 100_000, Senders: []string{}}}
	if got := rec.Report(nil).Congestion.Pauses; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestPauseRepeated: stops that are repeated keep the priority stopped, also if nobody ends them; a report in between changes nothing.
func TestPauseRepeated(t *testing.T) {
	rec := fabric.New(fabric.Options{})
	p := &rdma.Pause{PerPriority: true, Priorities: 1 << 3, Quanta: [8]uint16{3: 65535}}
	for i := range int64(400) {
		rec.Paused(p, rdma.Ref{Time: 1e9 + i*300e3, Number: uint64(i) + 1})
		if i == 200 {
			rec.Report(nil)
		}
	}
	want := []fabric.Pause{{Priority: 3, Stops: 400, Quanta: 400 * 65535, Held: 120e6, Senders: []string{}}}
	if got := rec.Report(nil).Congestion.Pauses; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	rec.Paused(p, rdma.Ref{Time: 10e9, Number: 500})
	if got := rec.Report(nil).Congestion.Pauses[0].Held; got != 120e6 {
		t.Errorf("%d, then a single stop", got)
	}
}

// TestPauseShort: stops of few quanta end long before they are repeated.
func TestPauseShort(t *testing.T) {
	rec := fabric.New(fabric.Options{})
	p := &rdma.Pause{PerPriority: true, Priorities: 1 << 3, Quanta: [8]uint16{3: 1000}}
	for i := range int64(400) {
		rec.Paused(p, rdma.Ref{Time: 1e9 + i*300e3, Number: uint64(i) + 1})
	}
	if got := rec.Report(nil).Congestion.Pauses[0].Held; got != 400*5120 {
		t.Errorf("held for %d ns", got)
	}
}
