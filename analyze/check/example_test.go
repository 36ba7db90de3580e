package check_test

import (
	"fmt"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Findings, counted by rule.
func Example() {
	found := make(map[string]int)
	c := check.New(check.Options{Rules: check.All()}, func(f *check.Finding) { found[f.Rule.ID]++ })
	r, _ := capture.Open([]string{"../../samples/rocev2-nfs3-loss.both.pcapng.zst"}, capture.Options{})
	defer r.Close()
	var view rpc.View
	d := decode.New(decode.Options{Observers: []decode.Observer{c.Observer()}}, func(tx *transaction.Transaction) {
		view.Set(tx)
		c.Transaction(&view)
	})
	err := d.Run(r)
	c.Finish()
	fmt.Println(found, err)
	// Output:
	// map[invalidate-undeclared:7 packets-resent:2 reply-chunk-needless:64] <nil>
}
