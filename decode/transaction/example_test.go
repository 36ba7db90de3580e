package transaction_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Where the time of the first call with data in chunks went. The parts of the
// latency sum to the total.
func ExampleTransaction_Phases() {
	r, err := capture.Open([]string{"../../samples/rocev2-nfs3-longcall.pcap"}, capture.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for tx, err := range decode.Transactions(r, decode.Options{}) {
		if err != nil {
			log.Fatal(err)
		}
		p, ok := tx.Phases()
		if !ok || tx.Reads == 0 {
			continue // call or reply were not captured, or the call was inline
		}
		for ph := range transaction.Parts() {
			fmt.Printf("%-14s %v\n", ph, p.Of(ph))
		}
		fmt.Printf("%-14s %v\n", "total", p.Total)
		break
	}
	// Output:
	// call_transfer  0s
	// argument_pull  3.851756ms
	// server         11.848097ms
	// result_push    0s
	// reply_transfer 0s
	// total          15.699853ms
}
