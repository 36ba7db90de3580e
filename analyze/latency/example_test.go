package latency_test

import (
	"fmt"
	"log"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// The median latency of each operation.
func Example() {
	rec := latency.New(latency.Options{})
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	defer r.Close()
	var view rpc.View
	for tx, err := range decode.Transactions(r, decode.Options{Observers: []decode.Observer{rec.Observer()}}) {
		if err != nil {
			log.Fatal(err)
		}
		view.Set(tx)
		rec.Add(&view)
	}
	for _, g := range rec.Report(latency.Source{}).Groups[:3] {
		fmt.Println(g.Key[0], g.Latency.Count, time.Duration(g.Latency.P50))
	}
	// Output:
	// nfs4.1 RECLAIM_COMPLETE 1 247.92873ms
	// nfs4.1 DESTROY_CLIENTID 1 113.386374ms
	// nfs4.1 SECINFO_NO_NAME 1 94.274105ms
}
