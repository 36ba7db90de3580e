package decode_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestCutCopies merges captures of two points, of which one has cut each packet, and shows them first, so many packets ahead. After a few packets the
// other one is followed: nothing else is lost, and no copy is a retransmission.
func TestCutCopies(t *testing.T) {
	for _, name := range []string{"iwarp-nfs41-midstream.pcap.zst", "iwarp-nfs40-basic.pcap.zst", "iwarp-nfs3-crc.pcap.zst"} {
		packets := sample(t, name, 0)
		type row struct {
			xid         uint32
			state       transaction.State
			call, reply int // bytes captured
			again       int
		}
		look := func(packets []capture.Packet) (rows []row) {
			decodedWith(packets, decode.Options{}, func(tx *transaction.Transaction) {
				if f := tx.Connection.Fabric; f == rdma.IWARP {
					rows = append(rows, row{tx.XID, tx.State, len(tx.Call.Payload), len(tx.Reply.Payload), tx.Retransmits})
				}
			})
			return rows
		}
		want := look(packets)
		for _, ahead := range []int{0, 1, 5} {
			t.Run(fmt.Sprint(name, " ", ahead), func(t *testing.T) {
				short := cutAt(packets, 120)
				var both []capture.Packet
				for i := range len(packets) + ahead {
					if i < len(short) {
						both = append(both, short[i])
					}
					if i >= ahead {
						p := packets[i-ahead]
						p.Tap = 1
						p.Time = both[len(both)-1].Time
						both = append(both, p)
					}
				}
				for i := range both {
					both[i].Number = uint64(i + 1)
				}
				got := look(both)
				if len(got) != len(want) {
					t.Fatalf("%d transactions, want %d", len(got), len(want))
				}
				other := 0
				for i := range got {
					if got[i].again > want[i].again {
						t.Errorf("transaction %d: %+v, want %+v", i, got[i], want[i])
					}
					if got[i] != want[i] {
						other++
						if i > len(got)/2 && !slices.Contains(want, got[i]) {
							t.Errorf("transaction %d: %+v, want %+v", i, got[i], want[i])
						}
					}
				}
				if other > 8+ahead {
					t.Errorf("%d of %d transactions are different", other, len(got))
				}
			})
		}
	}
}

// TestEqualCuts: a copy that is cut at the same place is no reason to follow another point.
func TestEqualCuts(t *testing.T) {
	packets := cutAt(sample(t, "iwarp-nfs41-midstream.pcap.zst", 0), 120)
	var both []capture.Packet
	for _, p := range packets {
		both = append(both, p)
		p.Tap = 1
		both = append(both, p)
	}
	for i := range both {
		both[i].Number = uint64(i + 1)
	}
	n := 0
	decodedWith(both, decode.Options{}, func(tx *transaction.Transaction) {
		n++
		for _, m := range []*transaction.Message{&tx.Call, &tx.Reply} {
			if m.Seen() && both[m.First.Number-1].Tap != 0 {
				t.Errorf("XID %08x: packet %d is of the other point", tx.XID, m.First.Number)
			}
		}
	})
	if n == 0 {
		t.Error("no transactions")
	}
}

// TestCutCopiesOfOneDirection: a point that shows one direction only is not followed, though it shows more of that one.
func TestCutCopiesOfOneDirection(t *testing.T) {
	for _, name := range []string{"iwarp-nfs41-midstream.pcap.zst", "rocev2-nfs41-midstream.pcap.zst"} {
		packets := sample(t, name, 0)
		short := cutAt(packets, 120)
		want := decoded(short, decode.Options{})
		for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
			var both []capture.Packet
			for i := range packets {
				both = append(both, short[i])
				var f link.Frame
				p := packets[i]
				if link.Decode(p.Link, p.Data, p.Length, &f); f.Src == netip.MustParseAddr(from) {
					p.Tap = 1
					both = append(both, p)
				}
			}
			got := decoded(both, decode.Options{})
			got.equal(t, want)
			if t.Failed() {
				t.Fatalf("%s, whole packets from %s", name, from)
			}
		}
	}
}
