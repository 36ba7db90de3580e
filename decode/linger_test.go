package decode_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/fleetgen"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// TestLinger: connections that have ended are forgotten if that is asked for, so that the length of a capture costs no memory; late packets, also at another capture
// point, belong to them for ten minutes.
func TestLinger(t *testing.T) {
	rping := sample(t, "rocev2-rping.pcap", 0)
	day := func(gap time.Duration, slower int64, copied time.Duration) (out []capture.Packet) {
		for i := range 200 {
			r := fleetgen.NewRewriter(i)
			for _, p := range rping {
				p.Data = slices.Clone(p.Data)
				p.Time = rping[0].Time + slower*(p.Time-rping[0].Time) + int64(i)*int64(gap)
				r.Packet(&p)
				out = append(out, p)
				if copied > 0 {
					p.Tap = 1
					p.Time += int64(copied)
					out = append(out, p)
				}
			}
		}
		slices.SortStableFunc(out, func(a, b capture.Packet) int { return int(min(max(a.Time-b.Time, -1), 1)) })
		for i := range out {
			out[i].Number = uint64(i + 1)
		}
		return out
	}
	for _, c := range []struct {
		name   string
		gap    time.Duration
		slower int64
		copied time.Duration // how much later another capture point has each packet
		most   int
	}{
		{"a connection a second", time.Second, 1, 0, 200},
		{"a connection a minute", time.Minute, 1, 0, 20},
		{"a connection a minute, two capture points", time.Minute, 1, 9 * time.Minute, 40},
		{"connections of twenty minutes, two capture points", time.Minute, 8800, 25 * time.Minute, 80},
	} {
		most, conns := 0, 0
		var d *decode.Decoder
		d = decode.New(decode.Options{RoCE: roce.Limits{Linger: 10 * time.Minute}, Observers: []decode.Observer{{
			Packet: func(*decode.PacketView) { most = max(most, d.Remembered()) },
			Closed: func(k *rdma.Connection) {
				if conns++; !k.Ended || !k.Setup[0].Seen() {
					t.Errorf("%s: connection %d was not seen from its setup to its end", c.name, k.ID)
				}
			},
		}}}, nil)
		traffic.Run(d, day(c.gap, c.slower, c.copied), 64)
		if most > c.most || most < c.most/3 || conns != 200 {
			t.Errorf("%s: %d connections, of which up to %d were remembered at once, want at most %d", c.name, conns, most, c.most)
		}
	}
}
