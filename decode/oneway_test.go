package decode_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestOneWay decodes each direction of a capture alone. The decoder counts the connections, and a connection has the same client as its
// transactions. A capture of both directions has no such connection.
func TestOneWay(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-meta.pcap.zst", "rocev2-nfs41-recall.pcap", "rocev2-nfs41-midstream.pcap.zst", "iwarp-nfs40-basic.pcap.zst", "iwarp-nfs41-recall.pcap"} {
		whole := load(t, filepath.Join("../samples", name))
		var f link.Frame
		from := func(p *capture.Packet) string {
			link.Decode(p.Link, p.Data, p.Length, &f)
			return f.Src.String()
		}
		run := func(packets []capture.Packet, trackers int) (conns []*rdma.Connection, client map[int]string, st decode.Stats) {
			client = map[int]string{}
			d := decode.New(decode.Options{Trackers: trackers, Concurrent: true, Observers: []decode.Observer{{Closed: func(c *rdma.Connection) {
				if c.MergedInto == nil {
					conns = append(conns, c)
				}
			}}}}, func(tx *transaction.Transaction) {
				from := tx.From
				if tx.Backward {
					from = from.Other()
				}
				client[tx.Connection.Resolve().ID] = tx.Connection.Resolve().Ends[from].Addr.String()
			})
			if err := d.Run(&slice{packets: packets, batch: 64}); err != nil {
				t.Fatal(err)
			}
			return conns, client, d.Stats()
		}
		_, _, st := run(slices.Clone(whole), 1)
		if st.OneWay != (rdma.Given{}) {
			t.Errorf("%s: %+v with both directions", name, st.OneWay)
		}
		peers := map[string]bool{}
		for i := range whole {
			peers[from(&whole[i])] = true
		}
		for only := range peers {
			packets := slices.DeleteFunc(slices.Clone(whole), func(p capture.Packet) bool { return from(&p) != only })
			for trackers := 1; trackers <= 2; trackers++ {
				t.Run(fmt.Sprintf("%s/%s/%d", name, only, trackers), func(t *testing.T) {
					conns, client, st := run(packets, trackers)
					var want rdma.Given
					for _, c := range conns {
						if side, ok := c.OneWay(); ok {
							want.Add(rdma.Given{Count: 1, Bytes: c.Sent[side].Bytes, First: c.First.Number})
						}
						side, _ := transaction.ClientOf(c)
						if a, ok := client[c.ID]; ok && a != c.Ends[side].Addr.String() {
							t.Errorf("connection %d: client %v, of its transactions %s", c.ID, c.Ends[side].Addr, a)
						}
					}
					if st.OneWay != want || len(client) > 0 && want.Count == 0 {
						t.Errorf("%+v, want %+v of %d connections", st.OneWay, want, len(conns))
					}
				})
			}
		}
	}
}
