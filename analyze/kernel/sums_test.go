package kernel

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestSentBytes: the kernel counts the record mark of a call over TCP, and no other transport has one.
func TestSentBytes(t *testing.T) {
	for fabric, want := range map[rdma.Fabric]uint64{rdma.RoCEv2: 100, rdma.IWARP: 100, rdma.UDP: 100, rdma.TCP: 104} {
		tx := &transaction.Transaction{Connection: &rdma.Connection{Fabric: fabric}}
		if n := sentBytes(tx); n != 0 {
			t.Errorf("%v: %d bytes of a call that was not captured", fabric, n)
		}
		tx.Call.Last, tx.Call.Bytes = rdma.Ref{Time: 1, Number: 1}, 100
		if n := sentBytes(tx); n != want {
			t.Errorf("%v: %d bytes, want %d", fabric, n, want)
		}
	}
}
