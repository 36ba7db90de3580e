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

// creditTest plays calls and replies, and notes how long each call waited.
type creditTest struct {
	*wire
	waited map[uint32]time.Duration
	at     map[uint32]int64
	grant  uint32
}

func newCreditTest(t *testing.T, grant uint32) *creditTest {
	k := &creditTest{newWire(t, rdma.RoCEv2), make(map[uint32]time.Duration), make(map[uint32]int64), grant}
	k.tr = transaction.NewTracker(keepData, func(tx *transaction.Transaction) { k.waited[tx.XID] = tx.Credits })
	return k
}

func (k *creditTest) play(from rdma.Side, xid uint32) {
	program := uint32(rocetest.Program)
	if from == 1 {
		program = 0
	}
	n := k.send(from, msg(rpcrdma.Header{XID: xid, Version: 1, Credits: k.grant, Type: rpcrdma.TypeMsg}, rpc(xid, from == 1, program, 8)))
	k.at[xid+uint32(from)*1000] = k.now
	k.ack(n)
}

// TestGrantOfNothing has a server that grants no credits: the client goes on with one call at a time.
func TestGrantOfNothing(t *testing.T) {
	k := newCreditTest(t, 0)
	for xid := uint32(1); xid <= 3; xid++ {
		k.play(0, xid)
		k.play(1, xid)
	}
	k.end()
	for xid := uint32(2); xid <= 3; xid++ {
		// Nothing is granted before the first reply, so only the third call is known to have waited.
		want := time.Duration(0)
		if xid == 3 {
			want = time.Duration(k.at[1002] - k.at[2])
		}
		if got := k.waited[xid]; got != want {
			t.Errorf("call %d waited %v, want %v", xid, got, want)
		}
	}
}

// TestRepliesNotCaptured has a capture that lacks packets of the server: what seems to be in use may have been freed.
func TestRepliesNotCaptured(t *testing.T) {
	for _, gap := range []bool{false, true} {
		k := newCreditTest(t, 2)
		k.play(0, 1)
		k.play(1, 1)
		k.play(0, 2)
		k.play(0, 3)
		if gap {
			k.tr.Event(k.c, 1, rdma.EventGap, 1, k.ref())
		}
		k.play(1, 2)
		k.play(0, 4)
		k.play(1, 3)
		k.play(1, 4)
		k.end()
		want := time.Duration(k.at[1002] - k.at[3])
		if gap {
			want = 0
		}
		if k.waited[4] != want {
			t.Errorf("gap %v: the call waited %v, want %v", gap, k.waited[4], want)
		}
	}
}
