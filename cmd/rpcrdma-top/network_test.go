package main

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestInNetwork: a client in a tunnel makes a filter, and names are as in reports.
func TestInNetwork(t *testing.T) {
	for _, test := range []struct {
		tunnel     *rdma.Tunnel
		expr, name string
	}{
		{nil, "192.0.2.2 && !tunnel.type", "no tunnel"},
		{&rdma.Tunnel{Type: "vxlan", HasID: true, ID: 7}, `192.0.2.2 && tunnel.type == "vxlan" && tunnel.id == 7`, "vxlan 7"},
		{&rdma.Tunnel{Type: "vxlan-gpe", HasID: true}, `192.0.2.2 && tunnel.type == "vxlan-gpe" && tunnel.id == 0`, "vxlan-gpe 0"},
		{&rdma.Tunnel{Type: "ipip"}, `192.0.2.2 && tunnel.type == "ipip"`, "ipip"},
	} {
		expr := inNetwork(&monitor.Usage{Name: "192.0.2.2", Tunnel: test.tunnel})
		if _, err := filter.Compile("client == " + expr); expr != test.expr || text.NetworkName(test.tunnel) != test.name || err != nil {
			t.Errorf("%s, %s, %v; want %s, %s", expr, text.NetworkName(test.tunnel), err, test.expr, test.name)
		}
	}
}

// TestShareOfTime: the share of a client refers to the time of all clients, not just of the clients in the list.
func TestShareOfTime(t *testing.T) {
	d := &drawing{g: &glyphs{}}
	list := []monitor.Usage{{Name: "192.0.2.2", Tally: monitor.Tally{Count: 1, Time: 5}}}
	x := d.usageTable(&monitor.Snapshot{}, list, 1000, 79_999, "CLIENT", true)
	for i, c := range x.columns {
		if c.title == "%TIME" && x.rows[0].cells[i].text != "0.5" {
			t.Errorf("%s %%", x.rows[0].cells[i].text)
		}
	}
}
