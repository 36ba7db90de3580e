package main

import (
	"math"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestSummaryLatency: a call whose reply is stamped before it counts in no latency, as in a report.
func TestSummaryLatency(t *testing.T) {
	call := transaction.Message{First: rdma.Ref{Time: 5e9, Number: 1}, Last: rdma.Ref{Time: 5e9, Number: 1}}
	reply := func(ns int64) transaction.Message {
		ref := rdma.Ref{Time: ns, Number: 2}
		return transaction.Message{First: ref, Last: ref}
	}
	s, r := newSummary(), &operationCount{}
	for _, x := range []*transaction.Transaction{
		{Call: call, Reply: reply(5e9 + 1000)},
		{Call: call, Reply: reply(2e9)},
		{Call: call},
		{Reply: reply(6e9)},
		{Call: call, Reply: reply(5e9 + 3000)},
	} {
		s.count(r, x, false)
	}
	if r.count != 5 || r.timed != 2 || r.sum != 4000 || r.longest != 3000 {
		t.Errorf("%d calls, %d timed, %v in all, %v at most", r.count, r.timed, r.sum, r.longest)
	}
	long := rdma.Ref{Time: -1 << 62, Number: 1}
	for range 2 {
		s.count(r, &transaction.Transaction{Call: transaction.Message{First: long, Last: long}, Reply: reply(1 << 62)}, false)
	}
	if r.sum != math.MaxInt64 {
		t.Errorf("%v in all: clocks that are wrong by centuries", r.sum)
	}
}
