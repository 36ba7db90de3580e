package fabric_test

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestLimited has receivers that keep 50 µs between CNPs of a connection, of two addresses, and of
// all that they send.
func TestLimited(t *testing.T) {
	const gap = 50_000
	for name, test := range map[string]struct {
		next func(i int) (conn int, at int64) // the i-th CNP
		want string
	}{
		// Two tenants have the same addresses: two receivers that know nothing of each other.
		"tenants":         {func(i int) (int, int64) { return []int{0, 4}[i%2], int64(i/2)*gap + int64(i%2)*3000 }, ""},
		"connection":      {func(i int) (int, int64) { return i % 2, int64(i/2)*gap + int64(i%2)*3000 }, "connection"},
		"addresses":       {func(i int) (int, int64) { return []int{0, 2, 1, 3}[i%4], int64(i/2)*gap + int64(i%2)*3000 }, "addresses"},
		"sender":          {func(i int) (int, int64) { return []int{0, 2, 1, 3}[i%4], int64(i) * gap }, "sender"},
		"no distance":     {func(i int) (int, int64) { return i % 4, int64(i / 4 * 10) }, ""},
		"one connection":  {func(i int) (int, int64) { return 0, int64(i) * gap }, ""},
		"too few to tell": {func(i int) (int, int64) { return i % 4, int64(min(i, 8)) * gap }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := fabric.New(fabric.Options{})
			var conns [5]*rdma.Connection
			for i := range conns {
				conns[i] = &rdma.Connection{ID: i + 1, Fabric: rdma.RoCEv2}
				// One receiver, and two connections with each of two senders.
				conns[i].Ends = [2]rdma.End{{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + i%4/2)}), QPN: uint32(20 + i)}, {Addr: netip.AddrFrom4([4]byte{192, 0, 2, 1}), QPN: uint32(40 + i)}}
				conns[i].Tenant = uint64(i / 4)
			}
			count := 200
			if name == "too few to tell" {
				count = 9
			}
			for i := range count {
				conn, at := test.next(i)
				rec.Saw(conns[conn], &rdma.Sighting{Ref: rdma.Ref{Time: 1e9 + at, Number: uint64(i + 1)}, From: 1, Class: rdma.ClassCNP})
			}
			if got := rec.Report(nil).Congestion.Limited; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestCNPsOfTenants: two tenants in tunnels have the same addresses, and their receivers send CNPs in turn.
func TestCNPsOfTenants(t *testing.T) {
	rec := fabric.New(fabric.Options{})
	for i := range 100 {
		c := &rdma.Connection{ID: 1 + i%2, Fabric: rdma.RoCEv2, Tenant: uint64(1 + i%2)}
		c.Ends = [2]rdma.End{{Addr: netip.AddrFrom4([4]byte{192, 0, 2, 2}), QPN: 20}, {Addr: netip.AddrFrom4([4]byte{192, 0, 2, 1}), QPN: 40}}
		rec.Saw(c, &rdma.Sighting{Ref: rdma.Ref{Time: 1e9 + int64(i)*1000, Number: uint64(i + 1)}, From: 1, Class: rdma.ClassCNP})
	}
	c := rec.Report(nil).Congestion
	if c.PerAddresses.Count != 98 || c.PerAddresses.Min != 2000 || c.PerSender.Count != 98 || c.PerSender.Min != 2000 {
		t.Errorf("addresses: %d from %d ns, senders: %d from %d ns, want 98 from 2000 ns",
			c.PerAddresses.Count, c.PerAddresses.Min, c.PerSender.Count, c.PerSender.Min)
	}
}
