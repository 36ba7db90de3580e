package monitor

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/mutate/holds"
	changed "github.com/rpcrdma/toolkit/internal/mutate/traffic"
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
		conns += s.Connections[i].Transactions
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
	c := connections{ended: []Connection{{ID: 1}, {ID: 2}, {ID: 3}}}
	tx := &transaction.Transaction{Connection: &rdma.Connection{ID: 2}}
	tx.Call.Bytes = 100
	c.add(tx, true, 7)
	if x := c.ended[1]; x.Transactions != 1 || x.Errors != 1 || x.Bytes != 100 || x.Time != 7 || c.ended[2].Transactions != 0 {
		t.Errorf("%+v", c.ended)
	}
}
