package decode

import (
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// messages counts what an Observer is told.
type messages struct {
	calls, replies, sends, tagged int
	operations, orphans, starts   int
	merged                        int
	last                          *transaction.Transaction
	failed                        string
}

func (m *messages) Message(tx *transaction.Transaction, reply bool, s *rdma.Send) {
	m.last = tx
	switch {
	case reply && s.From == tx.From, !reply && s.From != tx.From:
		m.failed = "a Send from the wrong side"
	case reply && tx.Reply.Last != s.Last, !reply && tx.Call.Last != s.Last:
		m.failed = "a Send of another transaction"
	case reply:
		m.replies++
	default:
		m.calls++
	}
}

func (m *messages) Send(*rdma.Connection, *rdma.Send) {
	m.sends++
	if m.last != nil {
		m.tagged++
	}
	m.last = nil
}

func (m *messages) OpStart(*rdma.Connection, *rdma.Op, rdma.Ref) { m.starts++ }

func (m *messages) Operation(tx *transaction.Transaction, op *rdma.Op) {
	if m.starts != m.operations+m.orphans {
		m.failed = "an operation after its start"
	}
	if tx == nil {
		m.orphans++
	} else {
		m.operations++
		if op.From != tx.From.Other() {
			m.failed = "an operation of the wrong side"
		}
	}
}

func (m *messages) Merged(*rdma.Connection, rdma.Side, *rdma.Connection, rdma.Side) { m.merged++ }

// An Observer is told of each call and each reply, before the Send, and
// of the connections that are joined; operations know their transaction.
func TestObserver(t *testing.T) {
	for _, cm := range []bool{true, false} {
		traffic := rocetest.Make(rocetest.Config{Seed: 3, Calls: 60, Callbacks: 5, CM: cm})
		m := &messages{}
		transactions := 0
		o := Observer{Message: m.Message, Send: m.Send, OpStart: m.OpStart, Operation: m.Operation, Merged: m.Merged}
		d := New(Options{Observers: []Observer{o}}, func(*transaction.Transaction) { transactions++ })
		d.Batch(&capture.Batch{Packets: rocetest.Frames(traffic.Taps[1])})
		d.Flush()
		ops := 0
		for _, tx := range traffic.Transactions {
			ops += tx.Reads + tx.Writes
		}
		if n := len(traffic.Transactions); transactions != n || m.calls != n || m.replies != n || m.tagged != 2*n || m.sends != 2*n {
			t.Errorf("%d transactions, %+v, want %d", transactions, m, n)
		}
		if m.operations != ops || m.orphans != 0 {
			t.Errorf("%d operations, %d orphans, want %d", m.operations, m.orphans, ops)
		}
		if m.merged > 0 == cm {
			t.Errorf("setup %v: %d connections joined", cm, m.merged)
		}
		if m.failed != "" {
			t.Error(m.failed)
		}
	}
}
