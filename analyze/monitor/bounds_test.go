package monitor

import (
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Connections that come and go within an interval are not held until it ends.
func TestConnectionsOfAnInterval(t *testing.T) {
	s := connections{limit: 100}
	for id := range 5000 {
		c := &rdma.Connection{ID: id + 1}
		s.see(c)
		s.touch(s.last)
		if id%3 == 0 {
			continue // goes on
		}
		s.closed(c)
		held := 0
		for _, x := range s.all {
			if x != nil {
				held++
			}
		}
		if most := s.limit + maxEnded; held > s.limit || len(s.touched) > most || len(s.all) > 2*s.limit+17 || len(s.ended) > maxEnded {
			t.Fatalf("after %d connections, %d are held, %d have something to count, %d have ended", id, held, len(s.touched), len(s.ended))
		}
	}
	for i, x := range s.touched {
		if x.touched != i+1 {
			t.Fatalf("the place of connection %d is %d, not %d", x.c.ID, x.touched, i+1)
		}
	}
	if len(s.by) != s.limit {
		t.Errorf("%d connections are followed, not %d", len(s.by), s.limit)
	}
}

// Intervals may come as often as packets, and calls may stay open: the work grows as the packets, not as their square.
func TestIntervalsOfOneCall(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 1000
	}
	m := New(Options{})
	m.Every(func() { m.Snapshot() })
	var x traffic
	var list []capture.Packet
	for i := range n {
		list = append(list, x.call(at(int64(i)*86_400*second), 0xc0000202, 900, uint32(i), 1))
	}
	m.Packets(list)
	if most := n * (minVisits + visitsEach + maxOpenRows + 1); m.visited > most {
		t.Errorf("%d visits to open transactions, at most %d", m.visited, most)
	}
	if s := m.Snapshot(); s.Open != n {
		t.Errorf("%d calls are open, not %d", s.Open, n)
	}
}
