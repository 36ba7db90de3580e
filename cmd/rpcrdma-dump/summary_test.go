package main

import (
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
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
