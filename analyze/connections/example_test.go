package connections_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/analyze/connections"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// The connections of a capture, with what they carried.
func Example() {
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	defer r.Close()
	var opt decode.Options
	opt.Observe(decode.Observer{Closed: func(k *rdma.Connection) {
		c := connections.New(k)
		fmt.Println(c.ID, c.Fabric, c.Ends[c.Client].Addr, c.Calls.Ended, c.State)
	}})
	if err := decode.New(opt, func(*transaction.Transaction) {}).Run(r); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 rocev2 192.0.2.2 50 closed
}
