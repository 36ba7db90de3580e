package text

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Streams returns a sentence for each way in which the streams of a capture contradict themselves: FPDUs whose length
// or header cannot be right, records of RPC with such marks, segments of TCP or packets of RoCE repeated with other bytes, and segments
// too far out of order. Each of them means that
// the input is malformed. There is none for a capture without contradictions.
func Streams(st *decode.Stats) []string {
	var all []string
	if g := &st.Misframed; g.Count > 0 {
		all = append(all, fmt.Sprintf("%s with a length or header that contradicts those around it: %s given up; the first is in packet %d, at offset %d of its TCP stream",
			units.Plural(g.Count, "FPDU"), units.Plural(g.Bytes, "byte"), g.First, g.Offset))
	}
	if g := &st.Mismarked; g.Count > 0 {
		all = append(all, fmt.Sprintf("%s of RPC over TCP with a mark or header that makes no sense: %s passed over; the first is in packet %d, at offset %d of its TCP stream",
			units.Plural(g.Count, "record"), units.Plural(g.Bytes, "byte"), g.First, g.Offset))
	}
	if g := &st.Differing; g.Count > 0 {
		all = append(all, fmt.Sprintf("%s repeated with other bytes, %s in all: the first ones count; the first is packet %d",
			units.Plural(g.Count, "packet"), units.Plural(g.Bytes, "byte"), g.First))
	}
	if g := &st.Displaced; g.Count > 0 {
		all = append(all, fmt.Sprintf("%s of TCP connections with segments far out of order: %s came too late and could not be decoded; the first such connection begins with packet %d",
			units.Plural(g.Count, "direction"), units.Plural(g.Bytes, "byte"), g.First))
	}
	return all
}

// Attempts returns a sentence for connections that were rejected, one for attempts to connect by TCP that were refused, and one each for
// those by TCP and by RDMA that had no answer.
func Attempts(st *decode.Stats) []string {
	var all []string
	for _, x := range []struct {
		count           *rdma.Given
		what, one, many string
	}{
		{&st.Rejected, "connection", "was rejected", "were rejected"},
		{&st.Refused, "attempt", "to connect to NFS or rpcbind by TCP was refused (RST)", "to connect to NFS or rpcbind by TCP were refused (RST)"},
	} {
		if n := x.count.Count; n > 0 {
			rest := x.many
			if n == 1 {
				rest = x.one
			}
			all = append(all, fmt.Sprintf("%s %s; the first begins with packet %d", units.Plural(n, x.what), rest, x.count.First))
		}
	}
	if s := Asked(&st.Unanswered, "to NFS or rpcbind by TCP"); s != "" {
		all = append(all, s)
	}
	if s := Asked(&st.Asked, "by RDMA"); s != "" {
		all = append(all, s)
	}
	return all
}

// Asked is a sentence about connections that were asked for in some way without an answer; empty if there are none.
func Asked(a *decode.Asked, how string) string {
	if a.Connections == 0 {
		return ""
	}
	has := "has"
	if a.Connections > 1 {
		has = "have"
	}
	s := fmt.Sprintf("%s to connect %s %s no answer in the capture: %s", units.Plural(a.Connections, "attempt"), how, has, units.Plural(a.Requests, "request"))
	if a.Longest > 0 {
		of := ""
		if a.Connections > 1 {
			of = "up to "
		}
		s += fmt.Sprintf(" within %s%s", of, units.Duration(a.Longest))
	}
	s += fmt.Sprintf("; the first is packet %d", a.First)
	switch a.V1 {
	case 0:
	case a.Connections:
		s += "; over RoCEv1, as with a GID of that type: a peer that expects RoCEv2 does not answer"
	default:
		s += fmt.Sprintf("; %d of the attempts over RoCEv1", a.V1)
	}
	switch a.OtherVersion {
	case 0:
	case a.Connections:
		s += "; the peer sends packets of the other version of RoCE"
	default:
		s += fmt.Sprintf("; %d of the attempts to peers that send packets of the other version of RoCE", a.OtherVersion)
	}
	if a.OtherPKey > 0 {
		s += fmt.Sprintf("; the P_Keys of the two ends do not match in %d of the attempts (first 0x%04x, and 0x%04x of the peer)", a.OtherPKey, a.PKeys[0], a.PKeys[1])
	}
	switch a.BadICRC {
	case 0:
	case a.Requests:
		s += "; every request has a wrong ICRC: the receiver drops it silently"
	default:
		s += fmt.Sprintf("; %d of the requests with a wrong ICRC", a.BadICRC)
	}
	return s
}

// Sampled is a sentence about the packets of RoCE whose first bytes datagrams of sFlow hold; empty if there are no such datagrams.
func Sampled(s *decode.Sampled) string {
	if s.Headers == 0 {
		return ""
	}
	b := fmt.Appendf(nil, "%s in datagrams of sFlow (one of %d packets is sampled): %s of RoCE", units.Plural(s.Headers, "sampled header"), s.Rate,
		units.Plural(s.RoCE, "packet"))
	for _, x := range []struct {
		n    uint64
		what string
	}{{s.Marked, "marked by congestion"}, {s.CNPs, "CNPs"}, {s.NAKs, "NAKs"}} {
		b = fmt.Appendf(b, ", %d %s", x.n, x.what)
	}
	sep := "; "
	for i := range s.Peers {
		if p := &s.Peers[i]; p.Packets > 0 {
			b = fmt.Appendf(b, "%s%d from %s to %s", sep, p.Packets, link.AddrString(p.From), link.AddrString(p.To))
			sep = ", "
		}
	}
	if s.Others > 0 {
		b = fmt.Appendf(b, "%s%d between others", sep, s.Others)
	}
	return string(append(b, "; samples show no transactions"...))
}

// Sequences is a sentence about the packets that the capture lacks by the sequence numbers of mirrors and tunnels; empty if it lacks none.
func Sequences(s *decode.Sequences) string {
	if s.Missing == 0 {
		return ""
	}
	of := "ERSPAN"
	switch {
	case s.ERSPAN && s.GRE:
		of = "ERSPAN and GRE"
	case s.GRE:
		of = "GRE"
	}
	return fmt.Sprintf("by the sequence numbers of %s, the capture has %s and lacks %d: the mirror or the way to here lost them, or a filter left them out; the first is missing before packet %d",
		of, units.Plural(s.Packets, "packet"), s.Missing, s.First)
}

// CutBefore is a sentence about packets that were cut before they were captured; empty if there are none.
func CutBefore(st *decode.Stats) string {
	if st.CutBefore == 0 {
		return ""
	}
	return units.Plural(st.CutBefore, "packet") + " cut before the capture, as by a mirror: the headers announce more; what is missing is not decoded"
}

// Backwards is a sentence about the places where the time of a capture goes back; empty if there are none.
func Backwards(b *decode.Backwards) string {
	if b.Count == 0 {
		return ""
	}
	first := ""
	if b.First > 0 {
		first = fmt.Sprintf("; the first is packet %d", b.First)
	}
	was, far := "is", "by"
	if b.Count > 1 {
		was, far = "are", "by up to"
	}
	return fmt.Sprintf("%s %s stamped earlier than the packet before, %s %s: the clock was set back, or the packets are not in the order of time; what spans such a place cannot be measured%s",
		units.Plural(b.Count, "packet"), was, far, units.Duration(b.Most), first)
}
