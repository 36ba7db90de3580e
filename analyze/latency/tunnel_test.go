package latency

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestTenants: hosts of several networks that have equal addresses are one group, and a note says so, also after the report was saved.
func TestTenants(t *testing.T) {
	for _, test := range []struct {
		by   []Key
		want string
	}{
		{[]Key{ByClient}, "in 1 group, several networks with equal addresses are added up: --by tunnel,client tells apart those whose outermost wrappings differ"},
		{[]Key{ByFile, ByServer}, "in 1 group, several networks with equal addresses are added up: --by tunnel,file,server tells apart those whose outermost wrappings differ"},
		{[]Key{ByTunnel, ByClient}, "in 1 group, several networks with equal addresses are added up"},
		{[]Key{ByOperation}, ""},
	} {
		r := New(Options{By: test.by})
		for i, tenant := range []uint64{0, 1, 2, 1} {
			c := &rdma.Connection{ID: 1 + i, Tenant: tenant}
			c.Ends[0].Addr, c.Ends[1].Addr = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
			var v rpc.View
			v.Set(&transaction.Transaction{Connection: c})
			r.Add(&v)
		}
		st := r.State(Source{})
		rep := st.Report()
		if len(rep.Groups) != 1 || rep.Groups[0].Count != 4 {
			t.Errorf("%v: %d groups", test.by, len(rep.Groups))
		}
		if got := strings.Join(rep.Notes, "; "); got != test.want {
			t.Errorf("%v: %q, want %q", test.by, got, test.want)
		}
	}
}

// TestByTunnel: tenants are distinguished by the identifier of their tunnels, wherever these end.
func TestByTunnel(t *testing.T) {
	ends := [2]netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")}
	for _, test := range []struct {
		tunnel *rdma.Tunnel
		want   string
	}{
		{nil, "-"},
		{&rdma.Tunnel{Type: "vxlan", HasID: true, ID: 100}, "vxlan 100"},
		{&rdma.Tunnel{Type: "vxlan", HasID: true, ID: 100, Ends: ends}, "vxlan 100"},
		{&rdma.Tunnel{Type: "vxlan", HasID: true, ID: 200, Ends: ends}, "vxlan 200"},
		{&rdma.Tunnel{Type: "erspan", Version: 3, HasID: true, ID: 7, Ends: ends}, "erspan type III 7"},
		{&rdma.Tunnel{Type: "ipip", Ends: ends}, "ipip"},
	} {
		var v rpc.View
		v.Set(&transaction.Transaction{Connection: &rdma.Connection{Tunnel: test.tunnel}})
		if got := label(ByTunnel, &v); got != test.want || string(appendKey(nil, ByTunnel, &v)) != test.want {
			t.Errorf("%q, key %q, want %q", got, appendKey(nil, ByTunnel, &v), test.want)
		}
	}
	if keys, err := ParseKeys("tunnel,client"); err != nil || len(keys) != 2 || keys[0] != ByTunnel {
		t.Errorf("%v, %v", keys, err)
	}
}
