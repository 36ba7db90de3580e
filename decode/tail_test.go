package decode_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
)

// TestTailLost: what was acknowledged at the end of a capture, and is not in it, is counted.
func TestTailLost(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap"} {
		packets := sample(t, name, 0)
		for _, part := range []int{5, 6, 7, 8} {
			var kept []capture.Packet
			var sent, acked [2]int64 // by the client, by the server; where the sequence numbers end, what the peer has acknowledged
			note := func(of *[2]int64, side int, to int64, add bool) {
				if add {
					of[side] = max(of[side], to)
				}
			}
			lost := 0
			for i := range packets[:len(packets)*9/10] {
				p := &packets[i]
				data := false
				if v, ok := look(p); ok && !v.q.Opcode.IsResponse() {
					data = i > len(packets)*part/10
					note(&sent, side(&v.Frame), int64(v.q.PSN)+1, !data && v.q.DestQP != 1)
				} else if ok {
					note(&acked, 1-side(&v.Frame), int64(v.q.PSN)+1, true)
				} else if v.Proto == link.TCP {
					data = i > len(packets)*part/10 && v.PayloadLen > 0
					note(&sent, side(&v.Frame), int64(v.TCPSeq)+int64(v.PayloadLen), !data && v.PayloadLen > 0)
					note(&acked, 1-side(&v.Frame), int64(v.TCPAck), !data)
				}
				if data {
					lost++
					continue
				}
				kept = append(kept, *p)
			}
			var want, got [2]uint64
			for i := range want {
				if acked[i] > sent[i] {
					want[i] = uint64(acked[i] - sent[i])
				}
			}
			for _, c := range decoded(kept, decode.Options{}).conns {
				for s := range c.Sent {
					got[host(c.Ends[s].Addr.String())] += c.Sent[s].Gaps
				}
			}
			if got != want || want == [2]uint64{} {
				t.Errorf("%s, %d data packets of the end left out: %d missing, want %d", name, lost, got, want)
			}
		}
	}
}

func side(f *link.Frame) int { return host(f.Src.String()) }

// host is 0 for the client of the samples, and 1 for their server.
func host(addr string) int {
	if addr == "192.0.2.1" {
		return 1
	}
	return 0
}
