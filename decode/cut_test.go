package decode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// snapped is packets as a capture with a snapshot length holds them.
func cutAt(packets []capture.Packet, n int) []capture.Packet {
	out := slices.Clone(packets)
	for i := range out {
		out[i].Data = out[i].Data[:min(n, len(out[i].Data))]
	}
	return out
}

// cutRow is what the first bytes of a transaction's packets tell.
type cutRow struct {
	xid         uint32
	call, reply int // bytes of the Sends
	latency     time.Duration
}

// lines are the transactions over RDMA.
func lines(packets []capture.Packet) (out []cutRow, unmarked int) {
	decodedWith(packets, decode.Options{}, func(tx *transaction.Transaction) {
		if f := tx.Connection.Fabric; f == rdma.TCP || f == rdma.UDP {
			return
		}
		l := cutRow{xid: tx.XID, call: tx.Call.SendBytes, reply: tx.Reply.SendBytes, latency: -1}
		if p, ok := tx.Phases(); ok {
			l.latency = p.Total
		}
		out = append(out, l)
		if (tx.Call.Cut || tx.Reply.Cut) && (tx.State == transaction.Complete || len(tx.Notes) == 0) {
			unmarked++
		}
	})
	return out, unmarked
}

// TestSnapLength: a frame of RoCEv2 that was cut at 64 bytes holds the XID, and
// one at 96 bytes the transport header. That makes a row.
func TestSnapLength(t *testing.T) {
	names := []string{
		"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs3-bulk.pcap.zst", "rocev2-nfs3-longcall.pcap", "rocev2-nfs3-meta.pcap.zst",
		"rocev2-nfs41-ipv6.pcap.zst", "rocev2-nfs41-midstream.pcap.zst", "rocev2-nfs41-mixed-load.pcap.zst", "rocev2-nfs41-recall.pcap",
		"rocev2-nfs41-restart.pcap.zst", "rocev2-nfs42-basic.pcap.zst", "rocev2-nfs3-loss.both.pcapng.zst", "rocev2-rping.pcap",
		"iwarp-nfs41-recall.pcap", "iwarp-nfs3-offload.pcap.zst",
	}
	if dir := os.Getenv("CAPTURES"); dir != "" {
		more, _ := filepath.Glob(filepath.Join(dir, "rocev2-*.pcap*"))
		names = append(names, more...)
	}
	for _, name := range names {
		packets := sample(t, name, 0)
		want, _ := lines(packets)
		for _, n := range []int{64, 96, 128} {
			t.Run(fmt.Sprint(filepath.Base(name), " ", n), func(t *testing.T) {
				want := slices.Clone(want)
				got, unmarked := lines(cutAt(packets, n))
				if strings.Contains(name, "ipv6") && n == 64 || strings.Contains(name, "iwarp") && n < 96 {
					if len(got) != 0 { // the headers below take all of it
						t.Errorf("%d transactions", len(got))
					}
					return
				}
				if unmarked > 0 {
					t.Errorf("%d cut transactions without a word", unmarked)
				}
				if len(got) != len(want) {
					t.Errorf("%d transactions, want %d", len(got), len(want))
				}
				differ := 0
				for i := range min(len(got), len(want)) {
					if strings.Contains(name, "vlan") && n == 64 && got[i].reply == 0 {
						want[i].reply, want[i].latency = 0, -1 // of Send With Invalidate not even the XID is there
					}
					if got[i] != want[i] {
						if differ++; differ <= 3 {
							t.Errorf("transaction %d: %+v, want %+v", i+1, got[i], want[i])
						}
					}
				}
				t.Logf("%d transactions, %d of %d differ", len(got), differ, len(want))
			})
		}
	}
}
