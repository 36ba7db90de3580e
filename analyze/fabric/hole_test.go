package fabric_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// TestLostWithin: where the capture lacks a packet, operations have the bytes that the connections have, and Writes keep their lengths.
func TestLostWithin(t *testing.T) {
	for _, name := range []string{"iwarp-nfs41-recall.pcap", "rocev2-nfs41-recall.pcap"} {
		r, err := capture.Open([]string{"../../samples/" + name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var packets []capture.Packet
		for b := new(capture.Batch); ; {
			if err := r.Read(b); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for _, p := range b.Packets {
				p.Data = slices.Clone(p.Data)
				packets = append(packets, p)
			}
		}
		lost := 0
		for i := range packets {
			if packets[i].Length < 200 {
				continue // most have no part of a Write
			}
			var wrote, sent, lengths uint64
			rec := fabric.New(fabric.Options{Operation: func(o *fabric.Operation) {
				if o.Kind == rdma.WorkWrite {
					wrote += o.Bytes
					lengths += uint64(o.Length)
				}
			}})
			d := decode.New(decode.Options{Observers: []decode.Observer{rec.Observer(), {Closed: func(c *rdma.Connection) {
				if c.MergedInto == nil {
					sent += c.Sent[0].WriteBytes + c.Sent[1].WriteBytes
				}
			}}}}, func(*transaction.Transaction) {})
			traffic.Run(d, slices.Delete(slices.Clone(packets), i, i+1), 64)
			if wrote != sent {
				t.Errorf("%s without packet %d: %d bytes of operations, %d of connections", name, i+1, wrote, sent)
			}
			if wrote < lengths {
				lost++
			}
		}
		if lost == 0 {
			t.Errorf("%s: no Write lacks anything", name)
		}
	}
}
