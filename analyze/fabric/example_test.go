package fabric_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// How losses were noticed, and how much was sent again.
func Example() {
	rec := fabric.New(fabric.Options{})
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs3-loss.both.pcapng.zst"}, capture.Options{})
	defer r.Close()
	d := decode.New(decode.Options{Observers: []decode.Observer{rec.Observer()}}, func(*transaction.Transaction) {})
	if err := d.Run(r); err != nil {
		log.Fatal(err)
	}
	for _, x := range rec.Report(nil).Recovery {
		fmt.Println(x.Notice, x.Count, "times,", x.Resent, "packets sent again")
	}
	// Output:
	// sequence NAK 4 times, 145 packets sent again
	// timeout 2 times, 2 packets sent again
	// repeated read 1 times, 149 packets sent again
}
