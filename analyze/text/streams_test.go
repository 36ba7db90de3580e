package text

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

func TestStreams(t *testing.T) {
	if got := Streams(new(decode.Stats)); len(got) != 0 {
		t.Errorf("of a capture without contradictions: %q", got)
	}
	got := Streams(&decode.Stats{
		Misframed: rdma.Given{Count: 1, Bytes: 100, First: 7, Offset: 40},
		Mismarked: rdma.Given{Count: 2, Bytes: 8, First: 3, Offset: 44},
		Differing: rdma.Given{Count: 2, Bytes: 1, First: 8},
		Displaced: rdma.Given{Count: 2, Bytes: 20000, First: 9},
	})
	want := []string{
		"1 FPDU with a length or header that contradicts those around it: 100 bytes given up; the first is in packet 7, at offset 40 of its TCP stream",
		"2 records of RPC over TCP with a mark or header that makes no sense: 8 bytes passed over; the first is in packet 3, at offset 44 of its TCP stream",
		"2 packets repeated with other bytes, 1 byte in all: the first ones count; the first is packet 8",
		"2 directions of TCP connections with segments far out of order: 20000 bytes came too late and could not be decoded; the first such connection begins with packet 9",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
