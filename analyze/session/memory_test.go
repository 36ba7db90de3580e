package session_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestMemory floods a Recorder with sessions, slots and calls: what it says that it holds is within its limit, and
// not far from what it does hold. Without an end of the input, what comes new is still followed.
func TestMemory(t *testing.T) {
	for _, live := range []bool{false, true} {
		const limit = 4 << 20
		w := newWorld(t)
		w.r = session.New(nil)
		w.r.Limit(limit)
		if live {
			w.r.Live()
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var open []*transaction.Transaction
		for i := range 2000 {
			w.id = [16]byte{byte(i), byte(i >> 8), 9}
			c := connection(i, "192.0.2.2", "192.0.2.1")
			w.answer(w.call(c, 4000, 4000), 4000)
			if i < 500 {
				for slot := range uint32(5) {
					tx := w.call(c, slot, 4000)
					tx.Call.Payload = nil
					open = append(open, tx)
				}
			}
			if n := w.r.Held(); n > limit || n < 0 {
				t.Fatalf("%d bytes held", n)
			}
		}
		w.v.Learn()
		runtime.GC()
		runtime.ReadMemStats(&after)
		held := w.r.Held()
		t.Logf("live %v: %d bytes held, the heap grew by %d", live, held, after.HeapAlloc-before.HeapAlloc)
		if grown := int(after.HeapAlloc - before.HeapAlloc); grown > held*5/4+len(open)*(int(unsafe.Sizeof(transaction.Transaction{}))+200)+500*int(unsafe.Sizeof(rdma.Connection{}))+1<<20 {
			t.Errorf("live %v: the heap grew by %d, of which %d are counted", live, grown, held)
		}
		list, _ := w.r.Uses(w.now, 10000)
		newest := false
		for _, u := range list {
			newest = newest || u.ID == "cf070900000000000000000000000000"
		}
		if lost := w.r.Report(nil).Beyond; newest != live || lost.Sessions == 0 {
			t.Errorf("live %v: %d sessions, the newest among them: %v; %+v", live, len(list), newest, lost)
		}
		// Nothing is counted twice, or not counted off.
		for _, tx := range open {
			w.r.Ended(tx)
		}
		if n := w.r.Held(); n > held || n < 0 {
			t.Errorf("live %v: %d bytes held, %d before calls ended", live, n, held)
		}
		runtime.KeepAlive(open)
	}
}
