package decode_test

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
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

// TestSendDiffers: a packet of a Send that is repeated with other bytes is not a retransmission like others, while its transaction is open.
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

// TestSendDiffersLater: it is none either when its transaction is over, as far as something of the message is remembered.
func TestSendDiffersLater(t *testing.T) {
	type kind struct {
		side  rdma.Side
		first bool // of several packets
	}
	tried := map[kind]int{}
	for _, file := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst"} {
		packets := sample(t, file, 0)
		want := decoded(packets, decode.Options{})
		ends := map[uint64]rdma.Side{} // of a call or reply, of a transaction that is over 7 packets later
		decodedWith(packets, decode.Options{}, func(tx *transaction.Transaction) {
			if tx.State != transaction.Complete || !tx.Times.Ack.Seen() || tx.Call.Header.Type != rpcrdma.TypeMsg {
				return
			}
			if n := tx.Times.Ack.Number; n < tx.Call.First.Number+6 {
				ends[tx.Call.First.Number] = 0
				ends[tx.Reply.First.Number] = 1
			}
		})
		for i := 0; i+20 < len(packets); i++ {
			side, ok := ends[uint64(i+1)]
			v, is := look(&packets[i])
			if !ok || !is || !v.q.Opcode.IsSend() || !v.q.Opcode.Starts() || v.q.PayloadLen < 60 {
				continue
			}
			k := kind{side, v.q.Opcode.IsFirst()}
			if tried[k] == 40 {
				continue
			}
			tried[k]++
			for _, differ := range []bool{false, true} {
				again := comesAgain(packets, i, 7, func(v *view) {
					v.bth.SetAckReq(!v.bth.AckReq())
					var h rpcrdma.Header
					at := 56
					if h.Decode(v.q.Payload, v.q.PayloadLen) == nil && side == 0 {
						at = h.Length + 20 // of a call, its RPC message is remembered
					}
					if differ {
						v.q.Payload[at] ^= 1
					}
				})
				got := decoded(again, decode.Options{})
				got.equal(t, want)
				d := decode.New(decode.Options{}, func(*transaction.Transaction) {})
				for i := range again {
					again[i].Number = uint64(i + 1)
				}
				traffic.Run(d, again, 64)
				n := uint64(0)
				if differ {
					n = 1
				}
				if g := d.Stats().Differing; g.Count != n || got.resyncs != 0 || n == 1 && g.First != uint64(i+8) {
					t.Fatalf("%s: packet %d of side %d, differs %v: %+v, %d resyncs", file, i+1, side, differ, g, got.resyncs)
				}
			}
		}
	}
	if tried[kind{0, false}] < 20 || tried[kind{1, false}] < 20 || tried[kind{0, true}]+tried[kind{1, true}] == 0 {
		t.Errorf("tried only %v", tried)
	}
}

// comesAgain is packets with a copy of packet i n packets later, in which change was called.
func comesAgain(packets []capture.Packet, i, n int, change func(*view)) []capture.Packet {
	p := packets[i]
	p.Data = slices.Clone(p.Data)
	p.Time = packets[i+n-1].Time
	v, _ := look(&p)
	change(&v)
	v.seal()
	return slices.Insert(slices.Clone(packets), i+n, p)
}

// TestCutCopyFirst: without a setup, a connection is followed where its packets are whole, though another point shows them first.
func TestCutCopyFirst(t *testing.T) {
	packets := sample(t, "rocev2-nfs41-midstream.pcap.zst", 0)
	want := decoded(packets, decode.Options{})
	for _, size := range []int{96, 128, 200, 400} {
		for _, delay := range []int64{2e3, 50e6} {
			var first, second []capture.Packet
			for _, p := range packets {
				q := p
				q.Tap, q.Time = 1, q.Time+delay
				second = append(second, q)
				p.Data = p.Data[:min(size, len(p.Data))]
				first = append(first, p)
			}
			both := slices.Concat(first, second)
			slices.SortStableFunc(both, func(a, b capture.Packet) int { return int(a.Time - b.Time) })
			got := decoded(both, decode.Options{})
			different := 0
			for _, r := range want.rows {
				if !slices.Contains(got.rows, r) {
					different++
				}
			}
			// Those under way while the other point is found remain cut.
			if different > 4 || len(got.rows) != len(want.rows) {
				t.Errorf("cut to %d bytes, %d ns earlier: %d of %d transactions differ, %d in all", size, delay, different, len(want.rows), len(got.rows))
			}
		}
	}
}
