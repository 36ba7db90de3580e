package session_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// The sessions of NFSv4.1, and how many slots were in use.
func Example() {
	rec := session.New(nil)
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	defer r.Close()
	view := rpc.View{Names: &rpc.Names{}}
	for tx, err := range decode.Transactions(r, decode.Options{Observers: []decode.Observer{rec.Observer()}}) {
		if err != nil {
			log.Fatal(err)
		}
		view.Set(tx)
		rec.Transaction(&view)
	}
	for _, s := range rec.Report(nil).Sessions {
		fmt.Println(s.ID, s.Captured, s.Slots.Most)
	}
	// Output:
	// e430016b0d2888a30100000000000000 true 1
}
