package cli

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestStreamProblems: what contradicts itself is damage, what is encrypted or missing is not.
func TestStreamProblems(t *testing.T) {
	for _, c := range []struct {
		stats   decode.Stats
		want    string
		damaged bool
	}{
		{decode.Stats{Packets: 1}, "", false},
		{
			decode.Stats{Packets: 1, Sealed: rdma.Given{Count: 2, Bytes: 5000, First: 8}},
			"x: note: 2 directions of RPC connections over TCP with TLS: 5000 encrypted bytes not decoded; the first begins with packet 8\n", false,
		},
		{
			decode.Stats{Packets: 9, IncompleteDatagrams: 1},
			"x: note: 1 IP datagram with fragments that are not in the capture: not decoded\n", false,
		},
		{
			decode.Stats{Packets: 9, OddFragments: 2},
			"x: 2 IP fragments that cannot be part of a datagram, or contradicted by others\n", true,
		},
		{
			decode.Stats{Packets: 1, Mismarked: rdma.Given{Count: 1, Bytes: 4, First: 8, Offset: 44}},
			"x: 1 record of RPC over TCP with a mark or header that makes no sense: 4 bytes passed over; the first is in packet 8, at offset 44 of its TCP stream\n", true,
		},
	} {
		var out strings.Builder
		p := NewProblems("x", &out)
		p.Files(nil, 0, &c.stats)
		p.Packets(&c.stats, 0)
		if out.String() != c.want || p.Damaged() != c.damaged {
			t.Errorf("%q, damaged %v", out.String(), p.Damaged())
		}
	}
}
