package decode_test

import (
	"slices"

	"github.com/rpcrdma/toolkit/capture"
)

// disturbed is packets with one of them moved, doubled or left out; the times
// stay in order.
func disturbed(packets []capture.Packet, how string, at, by int) []capture.Packet {
	out := slices.Clone(packets)
	switch how {
	case "drop":
		return slices.Delete(out, at, at+1)
	case "double":
		return slices.Insert(out, at+1, out[at])
	}
	p := out[at]
	to := min(at+by, len(out)-1)
	for i := at; i < to; i++ {
		time := out[i].Time
		out[i] = out[i+1]
		out[i].Time = time
	}
	p.Time = out[to].Time
	out[to] = p
	return out
}
