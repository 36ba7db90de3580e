package monitor

import (
	"testing"

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
