package live

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestObserver: clients of two tunnels with one address are distinguished, files that did nothing in the interval are not among
// those left out, and connections and clients have all counts.
func TestObserver(t *testing.T) {
	now := monitor.Tally{Count: 3, Errors: 1, Bytes: 300, Data: 200, Time: 9e6, Max: 5e6}
	seven := &rdma.Tunnel{Type: "vxlan", HasID: true, ID: 7}
	end := monitor.Peer{Address: "192.0.2.2", Endpoint: "QP 0x11"}
	s := &monitor.Snapshot{
		HasNow: true, NowSpan: time.Second,
		Clients:     []monitor.Usage{{Name: "192.0.2.2", Shared: true, Now: now}, {Name: "192.0.2.2", Shared: true, Tunnel: seven, Now: now}},
		ClientsNow:  2,
		Connections: []monitor.Connection{{ID: 1, Client: end, Now: now}, {ID: 2, Client: end, Tunnel: seven, Now: now}},
		FilesNow:    2*maxUsages + 5, FilesRest: 1_000_000,
	}
	for range 2 * maxUsages {
		s.Files = append(s.Files, monitor.Usage{Name: "idle"}, monitor.Usage{Name: "busy", Now: now})
	}
	x := (&Observer{Tap: "t", Agent: agentA}).Interval(s)
	want := Counts{3, 1, 300, 200, 9e6, 5e6}
	for i, name := range []string{"192.0.2.2 in no tunnel", "192.0.2.2 in vxlan 7"} {
		if c := x.Clients[i]; c.Name != name || c.Counts != want {
			t.Errorf("client %+v", c)
		}
	}
	for i, name := range []string{"192.0.2.2 QP 0x11 in no tunnel", "192.0.2.2 QP 0x11 in vxlan 7"} {
		if c := x.Conn[i]; c.Client != name || c.Counts != want {
			t.Errorf("connection %+v", c)
		}
	}
	if len(x.Files) != maxUsages || x.Rest.Files != maxUsages+5 || x.Rest.Clients != 0 {
		t.Errorf("%d files, %+v are not listed", len(x.Files), x.Rest)
	}
}
