package rpc

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestMalformedNoMessage: an RDMA_NOMSG without a chunk that holds its message is malformed; one whose message was not captured is not.
func TestMalformedNoMessage(t *testing.T) {
	header := func(typ rpcrdma.Type) rpcrdma.Header {
		return rpcrdma.Header{XID: 7, Version: rpcrdma.Version1, Credits: 1, Type: typ}
	}
	cut := header(rpcrdma.TypeNoMsg)
	cut.Cut = true
	for _, c := range []struct {
		name   string
		header rpcrdma.Header
		length int // of the message, of which nothing is there
		want   int
	}{
		{"no chunk", header(rpcrdma.TypeNoMsg), 0, 1},
		{"chunk not captured", header(rpcrdma.TypeNoMsg), 100, 0},
		{"header cut", cut, 0, 0},
		{"error", header(rpcrdma.TypeError), 0, 0},
	} {
		tx := &transaction.Transaction{}
		tx.Call.Last.Number, tx.Call.Payload, tx.Call.PayloadLength = 1, make([]byte, 40), 40
		tx.Call.Payload[11], tx.Call.PayloadLength = 2, 40 // RPC version 2
		tx.Reply.Last.Number, tx.Reply.Transport, tx.Reply.Header, tx.Reply.PayloadLength = 2, true, c.header, c.length
		var v View
		v.SetAll(tx)
		n := 0
		v.Malformed(func(packet uint64, part string, err error) {
			if packet != 2 || part != "reply header" {
				t.Errorf("%s: packet %d, %s: %v", c.name, packet, part, err)
			}
			n++
		})
		if n != c.want {
			t.Errorf("%s: %d parts are malformed, want %d", c.name, n, c.want)
		}
	}
}
