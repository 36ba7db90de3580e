package filter_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Transactions that an expression selects.
func Example() {
	slow, err := filter.Compile("op == OPEN and latency > 5ms")
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	defer r.Close()
	var view rpc.View
	for tx, e := range decode.Transactions(r, decode.Options{}) {
		if err != nil || e != nil {
			log.Fatal(err, e)
		}
		if view.Set(tx); slow.Match(&view) {
			fmt.Printf("XID %08x in packets %d to %d\n", tx.XID, tx.Call.First.Number, tx.Reply.Last.Number)
		}
	}
	// Output:
	// XID ae466d78 in packets 104 to 107
}
