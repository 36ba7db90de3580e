package latency

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestWaitedWithoutReply: what calls waited for before they began does not depend on a reply, or on RDMA.
func TestWaitedWithoutReply(t *testing.T) {
	r := New(Options{})
	for _, tx := range []transaction.Transaction{
		{State: transaction.NoReply, Credits: 3 * time.Microsecond},
		{State: transaction.NoReply, Slots: 5 * time.Microsecond},
		{State: transaction.Complete, Slots: 7 * time.Microsecond},
	} {
		tx.Connection = &rdma.Connection{ID: 1}
		tx.Call.First.Number, tx.Call.Last.Number = 1, 1
		if tx.State == transaction.Complete {
			tx.Reply.First.Number, tx.Reply.Last.Number = 2, 2
		}
		var v rpc.View
		v.Set(&tx)
		r.Add(&v)
	}
	l := r.Report(Source{}).All.Lost
	if l == nil || l.CreditWaits != 1 || l.CreditWait != 3000 || l.SlotWaits != 2 || l.SlotWait != 12000 || l.Looked() {
		t.Errorf("%+v", l)
	}
}
