package latency

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestByTunnel: tenants are told apart by the identifier of their tunnels, wherever these end.
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
