package ndjson_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// One JSON object for each transaction.
func ExampleEncoder() {
	var e ndjson.Encoder
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	defer r.Close()
	var view rpc.View
	for tx, err := range decode.Transactions(r, decode.Options{}) {
		if err != nil {
			log.Fatal(err)
		}
		view.Set(tx)
		fmt.Printf("%.80s\n", e.Append(nil, &view))
		break
	}
	// Output:
	// {"schema":"rpcrdma.transaction/1","time":"2026-11-21T05:49:36.855329905Z","xid":
}
