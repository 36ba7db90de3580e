package text

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode"
)

// Streams returns a sentence for each way in which TCP streams of a capture contradict themselves: FPDUs whose length
// or header cannot be right, records of RPC with such marks, segments repeated with other bytes, and segments too far out of order. Each of them means that
// the input is malformed. There is none for a capture without contradictions.
func Streams(st *decode.Stats) []string {
	var all []string
	if g := &st.Misframed; g.Count > 0 {
		all = append(all, fmt.Sprintf("%s with a length or header that contradicts those around it: %s given up; the first is in packet %d, at offset %d of its TCP stream",
			Plural(g.Count, "FPDU"), Plural(g.Bytes, "byte"), g.First, g.Offset))
	}
	if g := &st.Mismarked; g.Count > 0 {
		all = append(all, fmt.Sprintf("%s of RPC over TCP with a mark or header that makes no sense: %s passed over; the first is in packet %d, at offset %d of its TCP stream",
			Plural(g.Count, "record"), Plural(g.Bytes, "byte"), g.First, g.Offset))
	}
	if g := &st.Differing; g.Count > 0 {
		all = append(all, fmt.Sprintf("%s repeated with other bytes, %s in all: the first ones count; the first is packet %d",
			Plural(g.Count, "TCP segment"), Plural(g.Bytes, "byte"), g.First))
	}
	if g := &st.Displaced; g.Count > 0 {
		all = append(all, fmt.Sprintf("%s of TCP connections with segments far out of order: %s came too late and could not be decoded; the first such connection begins with packet %d",
			Plural(g.Count, "direction"), Plural(g.Bytes, "byte"), g.First))
	}
	return all
}
