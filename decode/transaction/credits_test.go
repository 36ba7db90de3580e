package transaction_test

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// TestWaitedForCredits has two credits. A call waited for one if both were in use until a reply
// freed one, and it is the first call after that.
func TestWaitedForCredits(t *testing.T) {
	waited := make(map[uint32]time.Duration)
	w := newWire(t, rdma.RoCEv2)
	w.tr = transaction.NewTracker(keepData, func(tx *transaction.Transaction) { waited[tx.XID] = tx.Credits })
	header := func(xid uint32) rpcrdma.Header {
		return rpcrdma.Header{XID: xid, Version: 1, Credits: 2, Type: rpcrdma.TypeMsg}
	}
	at := make(map[uint32]int64)
	call := func(xid uint32, ns int64) {
		w.now += ns
		w.ack(w.send(0, msg(header(xid), rpc(xid, false, rocetest.Program, 8))))
		at[xid] = w.now - 1000 // the acknowledgement took one
	}
	reply := func(xid uint32, ns int64) {
		w.now += ns
		n := w.send(1, msg(header(xid), rpc(xid, true, 0, 8)))
		at[xid] = w.now
		w.ack(n)
	}
	call(1, 0)
	call(2, 0) // nothing is granted yet
	reply(1, 5000)
	reply(2, 0)
	call(3, 0)
	call(4, 0) // the second credit
	full := at[4]
	reply(3, 70_000)
	freed := at[3]
	call(5, 100)
	full5 := at[5]
	reply(4, 20_000)
	freed4 := at[4]
	reply(5, 30_000)
	call(6, 10) // it waited for 4 at most, not for 5
	call(7, 0)
	reply(6, 1000)
	reply(7, 1000)
	w.tr.Closed(w.c, w.ref())
	w.tr.Flush()
	for xid, want := range map[uint32]time.Duration{1: 0, 2: 0, 3: 0, 4: 0, 5: time.Duration(freed - full), 6: time.Duration(freed4 - full5), 7: 0} {
		if got, ok := waited[xid]; !ok || got != want {
			t.Errorf("call %d waited %v, want %v", xid, got, want)
		}
	}
}
