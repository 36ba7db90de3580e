package decode_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// TestInTunnel compares the short way of packets in tunnels with the long one, where connections began before the capture, and others outside of
// all tunnels follow: transactions, counts, and connections with their tunnels.
func TestInTunnel(t *testing.T) {
	first, second := load(t, "../samples/rocev2-nfs3-basic.pcap.zst")[60:], load(t, "../samples/rocev2-nfs41-ipv6.pcap.zst")[60:]
	for i := range second {
		second[i].Time += first[len(first)-1].Time - second[0].Time + 1
	}
	for _, k := range someKinds(func(*wrap.Kind) bool { return true }) {
		packets := number(slices.Concat(wrapped(first, k, 3, 0), second))
		all := func(opt decode.Options) (lines []string, stats decode.Stats, account decode.Account) {
			t.Helper()
			var connections []string
			opt.Observe(decode.Observer{Closed: func(c *rdma.Connection) {
				connections = append(connections, fmt.Sprintf("%d %v %d %+v %+v %+v %v %v", c.ID, c.Fabric, c.Tenant, c.Tunnel, c.Ends, c.Sent, c.First, c.Last))
			}})
			d := decode.New(opt, func(tx *transaction.Transaction) { lines = append(lines, line(tx)) })
			if err := d.Run(&slice{packets: packets, batch: 64}); err != nil {
				t.Error(err)
			}
			return append(lines, connections...), d.Stats(), d.Account()
		}
		want, stats, account := all(decode.Options{Observers: []decode.Observer{{Packet: func(*decode.PacketView) {}}}})
		got, gotStats, gotAccount := all(decode.Options{})
		same(t, k.Name, got, want)
		if gotStats != stats || fmt.Sprint(gotAccount) != fmt.Sprint(account) {
			t.Errorf("%s: %+v\n%+v\nwant %+v\n%+v", k.Name, gotStats, gotAccount, stats, account)
		}
		shown := 0
		got, gotStats, _ = all(decode.Options{Observers: []decode.Observer{{Packet: func(*decode.PacketView) { shown++ }, Headers: func(*capture.Packet, *roce.FastPacket, *rdma.Connection) { shown++ }}}})
		same(t, k.Name+" with checks", got, want)
		if gotStats != stats || shown != len(packets) {
			t.Errorf("%s: %d of %d packets were shown", k.Name, shown, len(packets))
		}
		if _, s, _ := all(decode.Options{SkipICRC: true}); s.GoodICRC != 0 || s.NotChecked != stats.GoodICRC+stats.BadICRC+stats.NotChecked {
			t.Errorf("%s without checks of ICRCs: %+v", k.Name, s)
		}
	}
}
