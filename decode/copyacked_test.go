package decode_test

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestCopyOfAcknowledged: a copy of a packet that was acknowledged before it came changes no times, whatever the packet was.
func TestCopyOfAcknowledged(t *testing.T) {
	times := func(packets []capture.Packet) (all []transaction.Phases, again int) {
		decodedWith(packets, decode.Options{}, func(tx *transaction.Transaction) {
			p, _ := tx.Phases()
			all = append(all, p)
			again += tx.Retransmits
		})
		return all, again
	}
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap"} {
		packets := sample(t, name, 0)
		want, _ := times(packets)
		copies, repeated := 0, 0
		for i := range packets {
			p, acked := look(&packets[i])
			isRoCE := acked && p.q.DestQP != 1 && !p.q.Opcode.IsResponse()
			if !isRoCE && (p.Proto != link.TCP || p.PayloadLen == 0) {
				continue
			}
			for j := i + 1; j < len(packets); j++ {
				a, _ := look(&packets[j])
				if a.Src != p.Dst || isRoCE && (!a.q.Opcode.IsResponse() || int32((a.q.PSN-p.q.PSN)<<8) < 0) || !isRoCE && int32(a.TCPAck-p.TCPSeq-uint32(p.PayloadLen)) < 0 {
					continue
				}
				again := packets[i]
				again.Time = packets[j].Time + 1000
				got, n := times(slices.Insert(slices.Clone(packets), j+1, again))
				if !slices.Equal(got, want) {
					t.Errorf("%s: other times with a copy of packet %d after packet %d", name, i+1, j+1)
				}
				copies, repeated = copies+1, repeated+n
				break
			}
		}
		if copies < 100 || repeated == 0 {
			t.Errorf("%s: %d copies, %d counted", name, copies, repeated)
		}
	}
}
