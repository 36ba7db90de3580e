package main

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestSummaryOrder: operations that look alike, as the callbacks of many clients do, always come in the same order.
func TestSummaryOrder(t *testing.T) {
	print := func(from, step uint32) string {
		s := newSummary()
		for i := range uint32(40) {
			program := from + i*step
			r := s.row(operationKey{program: program, operation: "CB_RECALL"}, "nfs_cb")
			r.count, r.callBytes = 5, uint64(program)
		}
		var b bytes.Buffer
		s.print(&b, decode.New(decode.Options{}, func(*transaction.Transaction) {}))
		return b.String()
	}
	want := print(0x40000000, 1)
	for range 10 {
		if got := print(0x40000027, ^uint32(0)); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}
