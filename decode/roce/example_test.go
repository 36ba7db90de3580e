package roce_test

import (
	"fmt"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// A packet is made, sealed for its path and decoded again.
func Example() {
	path, ok := roce.NewPath(netip.MustParseAddrPort("192.0.2.1:50000"), netip.MustParseAddrPort("192.0.2.2:4791"))
	if !ok {
		return
	}
	out := roce.Packet{Opcode: roce.RCSendOnly, PKey: roce.DefaultPKey, DestQP: 17, PSN: 1, AckReq: true, Pad: 1}
	b := out.AppendHeaders(nil)
	b = append(b, "hello, world...\x00"...)
	b = path.Append(b, 0, 0)

	var in roce.Packet
	if !roce.Decode(b, len(b), &in) {
		fmt.Println(in.Problem)
	}
	fmt.Printf("%s to QP %d, PSN %d: %q, ICRC %s\n", in.Opcode, in.DestQP, in.PSN, in.Payload, path.Check(b, 0))
	// Output: RC Send Only to QP 17, PSN 1: "hello, world...", ICRC good
}

func ExampleSplitter() {
	var frame link.Frame // as link.Decode fills it in
	var splitter roce.Splitter
	var packet roce.Packet
	for splitter.Reset(&frame); splitter.Next(&packet); {
		if packet.Problem != roce.NoProblem {
			fmt.Println(packet.Problem)
			continue
		}
		fmt.Println(packet.Opcode, packet.PSN, packet.PayloadLen, packet.ICRC)
	}
	// Output: shorter than a base transport header and ICRC
}
