package decode_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// A Decoder gives each transaction to a function, and counts what it has seen.
// Package rpc says what the messages of a transaction contain.
func ExampleDecoder() {
	states := make(map[string]int)
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) { states[tx.State.String()]++ })
	decodeSample(d)
	fmt.Println(d.Stats().Packets, "packets; transactions:", states)
	// Output:
	// 281 packets; transactions: map[complete:50]
}

// decodeSample decodes a capture of a client whose delegation is recalled.
func decodeSample(d *decode.Decoder) {
	r, err := capture.Open([]string{"../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if err := d.Run(r); err != nil {
		log.Fatal(err)
	}
}

// The slowest transaction.
func ExampleTransactions() {
	r, _ := capture.Open([]string{"../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
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

// Messages and operations, as they pass: RDMA that no call has offered memory for would be suspicious.
func ExampleObserver() {
	var calls, replies, bytes, unknown int
	var opt decode.Options
	opt.Observe(decode.Observer{
		Message: func(_ *transaction.Transaction, reply bool, _ *rdma.Send) {
			if reply {
				replies++
			} else {
				calls++
			}
		},
		Operation: func(tx *transaction.Transaction, op *rdma.Op) {
			if bytes += int(op.Length); tx == nil {
				unknown++
			}
		},
	})
	decodeSample(decode.New(opt, func(*transaction.Transaction) {}))
	fmt.Println(calls, "calls,", replies, "replies,", bytes, "bytes by RDMA,", unknown, "unknown operations")
	// Output:
	// 50 calls, 50 replies, 50300 bytes by RDMA, 0 unknown operations
}

// Packets with their headers, and connections at their end.
func ExampleObserver_packets() {
	var opt decode.Options
	opcodes := make(map[string]int)
	opt.Observe(decode.Observer{
		Packet: func(v *decode.PacketView) {
			for i := range v.RoCE {
				opcodes[v.RoCE[i].Opcode.String()]++
			}
		},
		Closed: func(c *rdma.Connection) { fmt.Println("connection", c.ID, "over", c.Fabric) },
	})
	decodeSample(decode.New(opt, func(*transaction.Transaction) {}))
	fmt.Println(opcodes["RC Send Only"], "Sends of one packet")
	// Output:
	// connection 1 over rocev2
	// 86 Sends of one packet
}

// Where the time of the first call with data in chunks went. The parts of the
// latency sum to the total.
func Example_phases() {
	r, err := capture.Open([]string{"../samples/rocev2-nfs3-longcall.pcap"}, capture.Options{})
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
