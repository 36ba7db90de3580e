package cli

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
)

// TestStreamProblems: what contradicts itself is damage, what is encrypted or missing is not.
func TestStreamProblems(t *testing.T) {
	for _, c := range []struct {
		set     func(st *decode.Stats)
		want    string
		damaged bool
	}{
		{func(*decode.Stats) {}, "", false},
		{
			func(st *decode.Stats) { st.Sealed.Count, st.Sealed.Bytes, st.Sealed.First = 2, 5000, 8 },
			"x: note: 2 directions of RPC connections over TCP with TLS: 5000 encrypted bytes not decoded; the first begins with packet 8\n", false,
		},
		{
			func(st *decode.Stats) { st.IncompleteDatagrams = 1 },
			"x: note: 1 IP datagram with fragments that are not in the capture: not decoded\n", false,
		},
		{
			func(st *decode.Stats) { st.OddFragments = 2 },
			"x: 2 IP fragments that cannot be part of a datagram, or contradicted by others\n", true,
		},
		{
			func(st *decode.Stats) {
				st.Mismarked.Count, st.Mismarked.Bytes, st.Mismarked.First, st.Mismarked.Offset = 1, 4, 8, 44
			},
			"x: 1 record of RPC over TCP with a mark or header that makes no sense: 4 bytes passed over; the first is in packet 8, at offset 44 of its TCP stream\n", true,
		},
	} {
		st := decode.Stats{Packets: 9}
		c.set(&st)
		var out strings.Builder
		p := NewProblems("x", &out)
		p.Files(nil, 0, &st)
		p.Packets(&st, 0)
		if out.String() != c.want || p.Damaged() != c.damaged {
			t.Errorf("%q, damaged %v", out.String(), p.Damaged())
		}
	}
}
