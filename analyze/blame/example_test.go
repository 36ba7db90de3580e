package blame_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// How long calls waited because packets were lost.
func Example() {
	b := blame.New(fabric.Options{})
	opt := decode.Options{Observers: []decode.Observer{b.Recorder.Observer()}}
	opt.Transactions.Ended = b.Ended
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs3-loss.both.pcapng.zst"}, capture.Options{})
	defer r.Close()
	calls := 0
	for tx, err := range decode.Transactions(r, opt) {
		if err != nil {
			log.Fatal(err)
		}
		if tx.Blame != nil && tx.Blame.Of(rdma.CauseRecovery) > 0 {
			calls++
		}
	}
	fmt.Println(calls, "calls waited for packets to be sent again")
	// Output:
	// 6 calls waited for packets to be sent again
}
