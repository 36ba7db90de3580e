package decode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// quiet are places between packets, of RoCEv2 in the middle of a capture, where no
// transaction is under way and a request of the first caller comes next.
func quiet(packets []capture.Packet, most int) (places []int, client rdma.End) {
	type span struct{ from, to uint64 }
	var spans []span
	calls := map[uint64]bool{}
	decodedWith(packets, decode.Options{Transactions: transaction.Options{Packets: 1 << 12}}, func(tx *transaction.Transaction) {
		s := span{tx.First().Number, 0}
		for _, p := range tx.Packets {
			s.from, s.to = min(s.from, p.Ref.Number), max(s.to, p.Ref.Number)
		}
		spans = append(spans, s)
		if !tx.Backward && tx.Call.Seen() {
			calls[s.from] = s.from == tx.Call.First.Number
			if client.QPN == 0 {
				client = tx.Connection.Ends[tx.From]
			}
		}
	})
	slices.SortFunc(spans, func(a, b span) int { return int(a.from) - int(b.from) })
	end := uint64(0)
	for _, s := range spans {
		if s.from > end && end > 40 && calls[s.from] {
			places = append(places, int(s.from)-1)
		}
		end = max(end, s.to)
	}
	if len(places) > most {
		step := len(places) / most
		for i := range most {
			places[i] = places[i*step]
		}
		places = places[:most]
	}
	return places, client
}

// TestClientQueuePairReplaced: from a place on, the client of a connection has
// another queue pair, connected to the same one of the server, and the capture
// lacks the setup. Nothing disappears, wherever its PSNs lie.
func TestClientQueuePairReplaced(t *testing.T) {
	files := sampled.Captures(t, "rocev2-nfs*")
	if dir := os.Getenv("RPCRDMA_CAPTURES"); dir != "" {
		more, _ := filepath.Glob(filepath.Join(dir, "rocev2-nfs*.pcap*"))
		files = append(files, more...)
	}
	if len(files) == 0 {
		t.Fatal("no captures")
	}
	deltas := []int32{-100_000, -70_000, -60_000, -5000, -300, -17, -3, -1, 0, 1, 3, 17, 300, 5000, 60_000, 70_000, 4_000_000}
	if testing.Short() {
		deltas = []int32{-300, 1}
	}
	tried := 0
	for _, file := range files {
		if s, err := os.Stat(file); err != nil || s.IsDir() || strings.Contains(file, ".both.") {
			continue // of two capture points, one shows a packet before the place, the other behind it
		}
		file, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		packets := sample(t, file, 0)
		for name, packets := range map[string][]capture.Packet{
			"with setup": packets,
			"without setup": slices.DeleteFunc(slices.Clone(packets), func(p capture.Packet) bool {
				v, ok := look(&p)
				return !ok || v.q.Opcode.Service() != roce.ServiceRC
			}),
		} {
			want := decoded(packets, decode.Options{})
			places, client := quiet(packets, 3)
			if client.QPN == 0 {
				continue
			}
			for _, at := range places {
				for _, delta := range deltas {
					t.Run(fmt.Sprint(filepath.Base(file), " ", name, " at ", at, " by ", delta), func(t *testing.T) {
						changed := replaced(packets, at, client, uint32(delta))
						if changed == nil {
							return
						}
						tried++
						got := decoded(changed, decode.Options{})
						got.equal(t, want)
					})
				}
			}
		}
	}
	if t.Logf("%d replaced", tried); tried == 0 {
		t.Error("nothing was tried")
	}
}

// replaced gives the client with a queue pair another one from a place on. Its
// requests, and the answers to them, have other PSNs by delta.
func replaced(packets []capture.Packet, at int, client rdma.End, delta uint32) []capture.Packet {
	mine := func(v *view) bool { return v.Dst == client.Addr && v.q.DestQP == client.QPN }
	ends := map[rdma.End]bool{} // that the client sends to
	for i := range packets {
		if v, ok := look(&packets[i]); ok && v.Src == client.Addr && v.q.Opcode.Service() == roce.ServiceRC {
			ends[rdma.End{Addr: v.Dst, QPN: v.q.DestQP}] = true
		}
	}
	if len(ends) != 1 {
		return nil // several connections: whose are the packets?
	}
	tail := changed(packets[at:], func(v *view) {
		switch {
		case v.q.Opcode.Service() != roce.ServiceRC:
		case mine(v):
			v.bth.SetDestQP(0xabcd)
			if v.q.Opcode.IsResponse() {
				v.bth.SetPSN((v.q.PSN + delta) & 0xffffff)
			} else {
				v.bth.SetPSN((v.q.PSN + 0x654321) & 0xffffff)
			}
		case v.q.Opcode.IsResponse():
			v.bth.SetPSN((v.q.PSN + 0x654321) & 0xffffff)
		default:
			v.bth.SetPSN((v.q.PSN + delta) & 0xffffff)
		}
	})
	return append(slices.Clone(packets[:at]), tail...)
}

// TestNotReplaced: beside a connection there are the answers of another one between
// the same nodes, with the same PSNs and XIDs, whose requests the capture lacks. Each
// packet of them comes just before or behind its like. The connection keeps its peer.
func TestNotReplaced(t *testing.T) {
	for _, file := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst"} {
		packets := sample(t, file, 0)
		// Both have the setup: without it nothing tells such twins apart.
		_, client := quiet(packets, 1)
		want := decoded(packets, decode.Options{})
		for _, behind := range []int{0, 1} {
			var both []capture.Packet
			for i := range packets {
				both = append(both, packets[i])
				v, ok := look(&packets[i])
				if !ok || v.Dst != client.Addr || v.q.DestQP != client.QPN {
					continue
				}
				twin := changed(packets[i:i+1], func(v *view) { v.bth.SetDestQP(0xabcd) })
				both = slices.Insert(both, len(both)-1+behind, twin[0])
			}
			got := decoded(both, decode.Options{})
			for _, c := range got.conns {
				if c.Ends[0].QPN == 0xabcd && c.Ends[1].QPN != 0 || c.Ends[1].QPN == 0xabcd && c.Ends[0].QPN != 0 {
					t.Errorf("%s, %d behind: %v and %v are one connection", file, behind, c.Ends[0], c.Ends[1])
				}
			}
			for _, r := range want.rows {
				if !slices.Contains(got.rows, r) {
					t.Errorf("%s, %d behind: lost %+v", file, behind, r)
				}
			}
		}
	}
}
