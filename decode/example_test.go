package decode_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// A Decoder gives each transaction to a function, and counts what it has seen.
// Package rpc says what the messages of a transaction contain.
func ExampleDecoder() {
	r, err := capture.Open([]string{"../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	states := make(map[string]int)
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		states[tx.State.String()]++
	})
	if err := d.Run(r); err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Stats().Packets, "packets; transactions:", states)
	// Output:
	// 281 packets; transactions: map[complete:50]
}

// The slowest transaction.
func ExampleTransactions() {
	r, err := capture.Open([]string{"../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	var slowest transaction.Phases
	var xid uint32
	for tx, err := range decode.Transactions(r, decode.Options{}) {
		if err != nil {
			log.Fatal(err)
		}
		if p, ok := tx.Phases(); ok && p.Total > slowest.Total {
			slowest, xid = p, tx.XID
		}
	}
	fmt.Printf("XID %08x took %v\n", xid, slowest.Total)
	// Output:
	// XID 9b466d78 took 247.92873ms
}
