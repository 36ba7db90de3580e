package connections

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

var hosts = [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}

// sight is a packet of a side as a HeaderRecorder sees it.
func sight(c *rdma.Connection, from rdma.Side, port uint16, tos, ecn uint8) *decode.PacketView {
	eth := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}
	return &decode.PacketView{
		Packet: &capture.Packet{Link: capture.LinkEthernet, Data: eth}, Fabric: rdma.RoCEv2, Connection: c,
		Frame: &link.Frame{Proto: link.UDP, Src: hosts[from], Dst: hosts[from^1], SrcPort: port, ECN: ecn, TTL: 64, Net: []byte{0x45, tos}},
		RoCE:  []roce.Packet{{PKey: 0xffff}},
	}
}

func TestHeaders(t *testing.T) {
	c := &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2, Ends: [2]rdma.End{{Addr: hosts[0], QPN: 1}, {Addr: hosts[1], QPN: 2}}}
	var r HeaderRecorder
	for i := range uint8(12) {
		r.Packet(sight(c, 0, 49152, 0, 0))
		r.Packet(sight(c, 1, 50000+uint16(i%2), 26<<2, 2+i/11))
		r.Packet(sight(c, 1, 50000, i<<2, 2))
	}
	x := New(c)
	x.Headers = r.Take(c)
	if len(r.conns) != 0 || r.of != nil {
		t.Error("a closed connection is remembered")
	}
	k := state.NewWriter(nil)
	x.code(k)
	y := &Connection{Connection: new(rdma.Connection)}
	rd := state.NewReader(k.Bytes())
	if y.code(rd); rd.End() != nil {
		t.Fatal(rd.End())
	}
	for side, want := range []string{
		"source port 49152; DSCP 0; not ECN-capable: switches drop these packets instead of marking them; TTL 64; MAC 02:00:00:00:00:01 > 02:00:00:00:00:02; P_Key 0xffff",
		"source port 50000, 50001; DSCP 26, 0, 1, 2, …; ECN ECT(0), CE; TTL 64; MAC 02:00:00:00:00:01 > 02:00:00:00:00:02; P_Key 0xffff",
	} {
		if got := y.Headers[side].detail(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	var got map[string]any
	if err := json.Unmarshal(y.Headers[1].append(nil), &got); err != nil || len(got["more"].([]any)) != 1 || got["ecn"].([]any)[0] != "ect0" {
		t.Errorf("%v %v", got, err)
	}
}

// TestHeadersMerged: when two halves turn out to be one connection, each side has the headers of its half.
func TestHeadersMerged(t *testing.T) {
	a := &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2, Ends: [2]rdma.End{{Addr: hosts[0]}, {Addr: hosts[1], QPN: 2}}}
	b := &rdma.Connection{ID: 2, Fabric: rdma.RoCEv2, Ends: [2]rdma.End{{Addr: hosts[1]}, {Addr: hosts[0], QPN: 1}}}
	var r HeaderRecorder
	r.Packet(sight(a, 0, 100, 4, 2))
	v := sight(b, 1, 200, 8, 0)
	r.Packet(v)
	b.MergedInto = a
	r.Merge(b)
	if h := r.Take(a); h[0].join(headerPort) != "100" || h[1].join(headerPort) != "200" || len(r.conns) != 0 {
		t.Errorf("%+v", h)
	}
}

// Connections that networks cannot spread, and others.
func TestSharedPort(t *testing.T) {
	for _, test := range []struct {
		ports []uint16
		want  string
	}{
		{[]uint16{49152}, ""},
		{[]uint16{49152, 49152, 49152}, "3 connections from 10.0.0.1 to 10.0.0.2 share UDP source port 49152"},
		{[]uint16{49152, 49152, 49153}, ""},
	} {
		var p ports
		for i, port := range test.ports {
			c := &rdma.Connection{ID: i + 1, Fabric: rdma.RoCEv2, Ends: [2]rdma.End{{Addr: hosts[0], QPN: 1}, {Addr: hosts[1], QPN: 2}}}
			var r HeaderRecorder
			r.Packet(sight(c, 0, port, 0, 0))
			x := New(c)
			x.Headers = r.Take(c)
			p.add(x)
		}
		var out bytes.Buffer
		p.print(&out)
		if got := out.String(); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%v: %q", test.ports, got)
		}
	}
}
