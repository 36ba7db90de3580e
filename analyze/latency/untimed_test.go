package latency

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestUntimed: a note tells how many of the packets seen again the time series lacks.
func TestUntimed(t *testing.T) {
	for _, listed := range []int{1, 3} {
		r := New(Options{})
		ref := func(n uint64) rdma.Ref { return rdma.Ref{Number: n, Time: int64(n) * 1000} }
		tx := &transaction.Transaction{Connection: &rdma.Connection{ID: 1}, State: transaction.NoReply, Retransmits: 3}
		tx.Call.First, tx.Call.Last = ref(1), ref(1)
		for i := range listed {
			tx.Troubles = append(tx.Troubles, transaction.Trouble{Kind: rdma.EventRetransmit, Ref: ref(uint64(2 + i)), Own: true})
		}
		var v rpc.View
		v.Set(tx)
		r.Add(&v)
		rep := r.Report(Source{Packets: 9, First: ref(1), Last: ref(9)})
		const note = "of the packets seen again, 2 are not in the time series: no transaction lists them"
		if slices.Contains(rep.Notes, note) != (listed == 1) {
			t.Errorf("%d listed: %q", listed, rep.Notes)
		}
	}
}
