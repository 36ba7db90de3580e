package monitor

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	changed "github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzModel feeds changed captures to the state behind the live view, and looks
// at it in between.
func FuzzModel(f *testing.F) {
	for i := range changed.Count() {
		f.Add(uint8(i), uint8(i), []byte{})
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := changed.Apply(which, program)
		all := uint64(len(packets))
		n := 0
		for i := range packets {
			n += len(packets[i].Data)
		}
		data := make([]byte, 0, n)
		for i := range packets {
			// The model's batches may be kept.
			data = append(data, packets[i].Data...)
			packets[i].Data = data[len(data)-len(packets[i].Data) : len(data) : len(data)]
		}
		memory.Start()
		m := New(Options{
			Interval: time.Duration(1+how&7) * 10 * time.Millisecond, History: 4, Linger: time.Duration(how&8) * time.Millisecond, Packets: 20,
			Groups: how&16 != 0,
		})
		most := 0
		look := func() {
			s := m.Snapshot()
			if s == nil {
				t.Fatal("no snapshot")
			}
			most++
		}
		for len(packets) > 0 {
			n := min(len(packets), 1+int(how>>5)*4)
			m.Packets(packets[:n])
			packets = packets[n:]
			if most < 1 {
				look()
			}
		}
		m.Flush(nil)
		addsUp(t, m.Snapshot(), all)
		// A report takes as long as some ten packets.
		if len(program)%8 == 0 && m.Report(latency.Source{}) == nil {
			t.Fatal("no report")
		}
		memory.End(t)
	})
}

// addsUp fails if what a snapshot after the end of the input counts in several ways is not the same.
func addsUp(t *testing.T, s *Snapshot, packets uint64) {
	t.Helper()
	if s.Decoder.Packets != packets || s.Open+s.Unacked != 0 || !s.Ended {
		t.Fatalf("%d packets: %+v, %d calls open, %d replies not acknowledged", packets, s.Decoder, s.Open, s.Unacked)
	}
	if packets == 0 || s.Total == nil && s.First == 0 { // the time of no packet is one
		return
	}
	n := s.Decoder.Transactions
	var ops, clients, conns, history, open uint64
	for i := range s.Ops {
		if s.Ops[i].Total != nil {
			ops += s.Ops[i].Total.Count
		}
	}
	for _, c := range append(s.Clients, s.ClientsGone) {
		clients += c.Count
	}
	for i := range s.Connections {
		conns += s.Connections[i].Count
	}
	for i := range s.History {
		history += s.History[i].Count
	}
	for i := range s.Rows {
		if s.Rows[i].Open {
			open++
		}
	}
	if s.Total.Count != n || ops != n || clients != n || conns > n || history > n || open != 0 {
		t.Fatalf("%d transactions: %d in all, %d by operation, %d by client, %d by connection, %d in the latest intervals, %d rows of open ones",
			n, s.Total.Count, ops, clients, conns, history, open)
	}
	if len(s.History) < 4 && s.HasNow && history != n {
		t.Fatalf("%d transactions: %d in all intervals", n, history)
	}
}

// TestLateTransaction: a transaction that ends after its connection counts there.
func TestLateTransaction(t *testing.T) {
	var c connections
	for id := 1; id <= 3; id++ {
		c.ended = append(c.ended, &conn{last: &Connection{ID: id}})
	}
	tx := &transaction.Transaction{Connection: &rdma.Connection{ID: 2}}
	tx.Call.Bytes = 100
	c.add(tx, true, 7)
	c.roll()
	list, _ := c.list()
	want := Tally{Count: 1, Errors: 1, Bytes: 100, Time: 7, Max: 7}
	if x := list[1]; x.Tally != want || x.Now != want || list[2].Count != 0 {
		t.Errorf("%+v", list)
	}
}

// TestMergedConnection: what a connection has counted in earlier intervals is not counted in this one again by the one that it
// turns out to be a part of.
func TestMergedConnection(t *testing.T) {
	a, b := &rdma.Connection{ID: 1}, &rdma.Connection{ID: 2}
	c := connections{limit: maxConnections}
	c.see(b)
	tx := &transaction.Transaction{Connection: &rdma.Connection{ID: 2}}
	tx.Call.Bytes, tx.Call.Transport, tx.Call.Header.Credits = 100, true, 32
	tx.Call.Last.Number = 1
	c.add(tx, false, 7)
	c.roll()
	c.add(tx, false, 9)
	c.see(a)
	b.MergedInto = a
	c.closed(b)
	c.roll()
	list, _ := c.list()
	total, now := Tally{Count: 2, Bytes: 200, Time: 16, Max: 9}, Tally{Count: 1, Bytes: 100, Time: 9, Max: 9}
	if x := list[0]; len(list) != 1 || x.ID != 1 || x.Tally != total || x.Now != now || x.Asked != 32 {
		t.Errorf("%+v", list)
	}
}
