package decode_test

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/mutate/traffic"
)

// repeated is packets with a copy of packet i behind it, one millisecond later, in which change was called.
func repeated(packets []capture.Packet, i int, change func(*view)) []capture.Packet {
	p := packets[i]
	p.Data = slices.Clone(p.Data)
	p.Time += 1e6
	v, _ := look(&p)
	change(&v)
	v.seal()
	return slices.Insert(slices.Clone(packets), i+1, p)
}

// TestSendDiffers: a packet of a Send that is repeated with other bytes is no retransmission like others, while its transaction is open.
func TestSendDiffers(t *testing.T) {
	kinds := map[string]int{}
	for _, file := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst"} {
		packets := sample(t, file, 0)
		want := decoded(packets, decode.Options{})
		for i := range packets {
			v, ok := look(&packets[i])
			if !ok || !v.q.Opcode.IsSend() || v.q.Opcode.Service() != roce.ServiceRC || v.q.PayloadLen < 64 {
				continue
			}
			kind := v.q.Opcode.String()
			if kinds[kind]++; kinds[kind] > 12 {
				continue
			}
			for _, differ := range []bool{false, true} {
				again := repeated(packets, i, func(v *view) {
					v.bth.SetAckReq(!v.bth.AckReq()) // it is not the Send's
					if differ {
						v.q.Payload[v.q.PayloadLen-1] ^= 1
					}
				})
				got := decoded(again, decode.Options{})
				got.equal(t, want)
				n := uint64(0)
				if differ {
					n = 1
				}
				d := decode.New(decode.Options{}, func(*transaction.Transaction) {})
				for i := range again {
					again[i].Number = uint64(i + 1)
				}
				traffic.Run(d, again, 64)
				if g := d.Stats().Differing; g.Count != n || got.notes[transaction.BytesDiffer] != int(n) || got.resyncs != 0 ||
					n == 1 && (g.First != uint64(i+2) || g.Bytes != uint64(v.q.PayloadLen)) {
					t.Fatalf("%s: %s in packet %d, differs %v: %+v, %d notes, %d resyncs", file, kind, i+1, differ, g, got.notes[transaction.BytesDiffer], got.resyncs)
				}
			}
		}
	}
	for _, kind := range []string{"RC Send First", "RC Send Middle", "RC Send Last", "RC Send Only", "RC Send Only Invalidate"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s was tried: %v", kind, kinds)
		}
	}
}
