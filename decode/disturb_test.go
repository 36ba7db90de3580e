package decode_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

var disturbances = flag.Int("disturb", 8, "packets of each capture that are dropped, doubled, swapped, delayed")

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

// TestDisturbed: whatever happens to one packet, no transaction is complete
// with other bytes than it has, and none disappears whose packets are there.
func TestDisturbed(t *testing.T) {
	names := []string{
		"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs3-bulk.pcap.zst", "rocev2-nfs3-longcall.pcap", "rocev2-nfs3-meta.pcap.zst",
		"rocev2-nfs41-ipv6.pcap.zst", "rocev2-nfs41-midstream.pcap.zst", "rocev2-nfs41-mixed-load.pcap.zst", "rocev2-nfs41-recall.pcap",
		"rocev2-nfs41-restart.pcap.zst", "rocev2-nfs42-basic.pcap.zst",
	}
	for _, name := range names {
		packets := sample(t, name, 3000)
		want := decoded(packets, decode.Options{})
		if len(want.rows) < 10 {
			t.Fatalf("%s: %d transactions", name, len(want.rows))
		}
		truth := map[uint32][]row{}
		for _, r := range want.rows {
			truth[r.XID] = append(truth[r.XID], r)
		}
		of := map[uint64]map[uint32]bool{} // XIDs by packet
		decodedWith(packets, decode.Options{Transactions: transaction.Options{Packets: 1 << 16}}, func(tx *transaction.Transaction) {
			for _, p := range tx.Packets {
				if of[p.Ref.Number] == nil {
					of[p.Ref.Number] = map[uint32]bool{}
				}
				of[p.Ref.Number][tx.XID] = true
			}
		})
		for _, how := range []string{"drop", "double", "swap", "delay"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(len(name)), uint64(how[1])))
				wrong, gone, resyncs := 0, 0, uint64(0)
				for range *disturbances {
					at, by := rng.IntN(len(packets)), 1
					if how == "delay" {
						by = 2 + rng.IntN(4)
					}
					got := decoded(disturbed(packets, how, at, by), decode.Options{})
					resyncs += max(got.resyncs, want.resyncs) - want.resyncs
					tell := func(n *int, format string, args ...any) {
						if *n++; *n <= 3 {
							t.Errorf("%s packet %d by %d: %s", how, at+1, by, fmt.Sprintf(format, args...))
						}
					}
					have := map[uint32]int{}
					for _, r := range got.rows {
						have[r.XID]++
						if r.State != transaction.Complete {
							continue
						}
						if !slices.ContainsFunc(truth[r.XID], func(w row) bool {
							return w.ReadB == r.ReadB && w.WriteB == r.WriteB && w.CallB == r.CallB && w.ReplyB == r.ReplyB && w.Procedure == r.Procedure
						}) {
							tell(&wrong, "got %+v, want %+v", r, truth[r.XID])
						}
					}
					for xid, rows := range truth {
						if have[xid] < len(rows) && (how != "drop" || !of[uint64(at+1)][xid]) {
							tell(&gone, "XID %#x %d times, want %d", xid, have[xid], len(rows))
						}
					}
				}
				t.Logf("%d disturbed: %d wrong, %d gone, %d resyncs", *disturbances, wrong, gone, resyncs)
			})
		}
	}
}
