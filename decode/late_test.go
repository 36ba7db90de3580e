package decode_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// behind is a copy of packets in which those that the client sends are stamped
// later by some time; sorted puts them there, too.
func behind(packets []capture.Packet, later time.Duration, client func(*link.Frame) bool, sorted bool) []capture.Packet {
	out := slices.Clone(packets)
	var f link.Frame
	for i := range out {
		p := &out[i]
		if link.Decode(p.Link, p.Data, p.Length, &f); client(&f) {
			p.Time += int64(later)
		}
	}
	if sorted {
		slices.SortStableFunc(out, func(a, b capture.Packet) int { return int(a.Time - b.Time) })
	}
	return out
}

// TestReplyBeforeCall: the clock of the client's packets is ahead, so that
// replies are stamped before their calls, and stand before them where the file is
// in order. Each is still matched with its call, and no latency is made up.
func TestReplyBeforeCall(t *testing.T) {
	for _, name := range []string{
		"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "iwarp-nfs40-basic.pcap.zst", "rocev2-nfs42-basic.pcap.zst",
	} {
		packets := sample(t, name, 0)
		type shape struct {
			xid, procedure uint32
			backward       bool
			call, reply    int
		}
		of := func(tx *transaction.Transaction) shape {
			procedure := tx.Procedure
			if tx.Call.Header.PositionZero().Length > 0 { // its bytes may be missing
				procedure = 0
			}
			return shape{tx.XID, procedure, tx.Backward, tx.Call.SendBytes, tx.Reply.SendBytes}
		}
		want := map[shape]int{}
		decodedWith(packets, decode.Options{}, func(tx *transaction.Transaction) { want[of(tx)]++ })
		for _, later := range []time.Duration{time.Microsecond, 20 * time.Microsecond, 300 * time.Microsecond, 5 * time.Millisecond, 131 * time.Millisecond} {
			for _, sorted := range []bool{false, true} {
				for _, side := range []string{"192.0.2.2", "192.0.2.1"} {
					t.Run(fmt.Sprint(name, " ", side, " ", later, " sorted ", sorted), func(t *testing.T) {
						moved := behind(packets, later, func(f *link.Frame) bool { return f.Src.String() == side }, sorted)
						got := map[shape]int{}
						rows, untimed, incomplete := 0, 0, 0
						decodedWith(moved, decode.Options{}, func(tx *transaction.Transaction) {
							rows++
							got[of(tx)]++
							p, ok := tx.Phases()
							said := slices.ContainsFunc(tx.Notes, func(n transaction.Note) bool {
								return n.Kind == transaction.ReplyStampedEarlier || n.Kind == transaction.ReplyFirstSameTime
							})
							switch sum := p.CallTransfer + p.ArgumentPull + p.Server + p.ResultPush + p.ReplyTransfer; {
							case tx.State == transaction.NoReply || tx.State == transaction.NoCall:
							case ok && (p.Total < 0 || p.Divided() && sum != p.Total || said), !ok && !said:
								t.Errorf("XID %#x: total %v, sum %v, ok %v; notes %q", tx.XID, p.Total, sum, ok, tx.Notes)
							case !ok:
								untimed++
							}
							if tx.State == transaction.Incomplete {
								incomplete++
							}
						})
						// With 131 ms the setup of connections is out of order, too.
						lost, most := 0, 0
						if sorted && later > 100*time.Millisecond {
							most = 8
						}
						for s, n := range want {
							if got[s] != n {
								if lost++; lost > most {
									t.Errorf("%+v: %d times, want %d", s, got[s], n)
								}
							}
						}
						t.Logf("%d rows, %d lost, %d without latency, %d incomplete", rows, lost, untimed, incomplete)
					})
				}
			}
		}
	}
}
