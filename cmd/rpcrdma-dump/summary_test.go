package main

import (
	"math"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestShort: a summary is the same whether transactions are decoded or only looked at in brief, which most are.
func TestShort(t *testing.T) {
	for _, name := range []string{
		"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs3-loss.both.pcapng.zst", "rocev2-nfs3-longcall.pcap", "iwarp-nfs40-basic.pcap.zst",
		"rocev2-nfs41-recall.pcap", "rocev2-nfs41-mixed-load.pcap.zst", "rocev2-nfs42-basic.pcap.zst",
	} {
		r, err := capture.Open([]string{"../../samples/" + name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, got := newSummary(), newSummary()
		var view rpc.View
		short, all := 0, 0
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			view.Set(tx)
			want.add(&view)
			all++
			if got.short(tx) {
				short++
			} else {
				got.add(&view)
			}
		})
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
		t.Logf("%s: %d of %d", name, short, all)
		if !reflect.DeepEqual(got.rows, want.rows) || got.states != want.states || got.retransmits != want.retransmits {
			t.Errorf("%s: %+v\nnot %+v", name, got, want)
		}
	}
}

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
