package ndjson

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

func TestKey(t *testing.T) {
	a := rdma.End{Addr: netip.MustParseAddr("192.0.2.10"), QPN: 17}
	b := rdma.End{Addr: netip.MustParseAddr("192.0.2.9"), QPN: 4000}
	six := rdma.End{Addr: netip.MustParseAddr("fd00::1"), Port: 20049}
	for _, x := range []struct {
		c    rdma.Connection
		want string
	}{
		{rdma.Connection{Fabric: rdma.RoCEv2, Ends: [2]rdma.End{a, b}, First: rdma.Ref{Time: 7, Number: 3}}, "rocev2|192.0.2.9/4000|192.0.2.10/17|7"},
		{rdma.Connection{Fabric: rdma.RoCEv2, Ends: [2]rdma.End{b, a}, First: rdma.Ref{Time: 7}, ID: 5}, "rocev2|192.0.2.9/4000|192.0.2.10/17|7"},
		{rdma.Connection{Fabric: rdma.IWARP, Ends: [2]rdma.End{six, {Addr: six.Addr, Port: 999}}, First: rdma.Ref{Time: -1}}, "iwarp|fd00::1/999|fd00::1/20049|-1"},
		{rdma.Connection{Fabric: rdma.RoCEv2, Ends: [2]rdma.End{b, {Addr: a.Addr}}, Tenant: 0x1f}, "rocev2|192.0.2.9/4000|192.0.2.10/0|0"},
	} {
		var e Encoder
		if got := string(e.Key(nil, &x.c)); got != x.want {
			t.Errorf("%s, want %s", got, x.want)
		}
	}
	var e Encoder
	c := rdma.Connection{Fabric: rdma.RoCEv2, Ends: [2]rdma.End{a, b}}
	buf := e.Key(nil, &c)
	if n := testing.AllocsPerRun(100, func() { buf = e.Key(buf[:0], &c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestKeys: each connection of a capture has one key, from its first transaction to
// its end, and no other has the same.
func TestKeys(t *testing.T) {
	files := sampled.Captures(t, "*")
	for _, file := range files {
		r, err := capture.Open([]string{file}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var e Encoder
		keys, of := map[int]string{}, map[string]int{}
		see := func(c *rdma.Connection) {
			k := string(e.Key(nil, c))
			if old, ok := keys[c.ID]; ok && old != k {
				t.Errorf("%s: connection %d: %s, and %s", file, c.ID, old, k)
			}
			if id, ok := of[k]; ok && id != c.ID {
				t.Errorf("%s: %s is connection %d and %d", file, k, id, c.ID)
			}
			keys[c.ID], of[k] = k, c.ID
		}
		d := decode.New(decode.Options{Observers: []decode.Observer{{Closed: func(c *rdma.Connection) {
			if c.MergedInto == nil && c.ID != 0 {
				see(c)
			}
		}}}}, func(tx *transaction.Transaction) { see(tx.Connection) })
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
