package text_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// The first lines of the listing.
func ExampleLister() {
	list := text.Lister{}
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	defer r.Close()
	view, n := rpc.View{Names: &rpc.Names{}}, 0
	for tx, err := range decode.Transactions(r, decode.Options{}) {
		if err != nil {
			log.Fatal(err)
		}
		view.Set(tx)
		fmt.Printf("%s\n", list.Append(nil, &view))
		view.Learn()
		if n++; n == 2 {
			break
		}
	}
	// Output:
	// 05:49:36.855329 192.0.2.2 > 192.0.2.1 97466d78 nfs4    NULL                                              - 7.579ms ok
	// 05:49:36.875119 192.0.2.2 > 192.0.2.1 98466d78 nfs4.1  EXCHANGE_ID                               P4240:100 28.69ms ok
}
