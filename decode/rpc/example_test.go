package rpc_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Failed calls are counted by what they asked for. A View is set to one transaction
// after the other, and says what its messages contain.
func ExampleView() {
	r, err := capture.Open([]string{"../../samples/rocev2-nfs3-longcall.pcap"}, capture.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	calls := make(map[string]int)
	var view rpc.View
	for tx, err := range decode.Transactions(r, decode.Options{}) {
		if err != nil {
			log.Fatal(err)
		}
		view.Set(tx)
		if view.Failed() {
			calls[view.ProgramName()+" "+view.ProcedureName()+" "+view.Status()]++
		}
	}
	fmt.Println(calls)
	// Output:
	// map[nfsacl GETACL SYSTEM_ERR:3 nfsacl SETACL GARBAGE_ARGS:3]
}
