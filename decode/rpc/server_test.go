package rpc

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// TestServers: what is told of one server says nothing of another, though handles and names are equal. One Names for several
// servers knows what one for each would.
func TestServers(t *testing.T) {
	servers := []Server{0, 5, 1 << 60}
	random := rand.New(rand.NewPCG(128, 1))
	var all Names
	each := make([]Names, len(servers))
	handles := []string{"a", "b", "a handle of 24 bytes, one", "a handle of 24 bytes, two", "a root of 20 bytes!!", string(make([]byte, 40))}
	some := func() []byte { return []byte(handles[random.IntN(len(handles))]) }
	name := func() []byte { return []byte{'n', byte('0' + random.IntN(5))} }
	for step := range sampled.Rounds(20_000) {
		i := random.IntN(len(servers))
		n, x := all.At(servers[i]), &each[i]
		switch random.IntN(4) {
		case 0:
			dir, name := some(), name()
			n.remove(dir, name)
			x.remove(dir, name)
		case 1:
			from, old, to, now := some(), name(), some(), name()
			n.rename(from, old, to, now)
			x.rename(from, old, to, now)
		default:
			dir, child, name := some(), some(), name()
			n.learn(dir, child, name)
			x.learn(dir, child, name)
		}
		if step%1500 == 1499 {
			all.known.rehash()
			all.dir = nil
			all.recent.forget()
		}
		for _, k := range random.Perm(len(servers)) {
			h := some()
			got, want := all.At(servers[k]).Path(h), each[k].Path(h)
			if short := string(all.AppendPath(nil, h)); got != want || short != want {
				t.Fatalf("step %d: server %d: path of %q is %q, and %q in short, want %q", step, k, h, got, short, want)
			}
		}
	}
}

// TestServersInOneSlot asks for files of two servers that are kept in the same place, in turn.
func TestServersInOneSlot(t *testing.T) {
	for _, h := range []string{"a handle of 24 bytes, one", "short", string(make([]byte, 40))} {
		handle, other := []byte(h), Server(1)
		for slotOf(other, handle) != slotOf(0, handle) {
			other++
		}
		var n Names
		n.At(0).learn([]byte("d"), handle, []byte("first"))
		n.At(other).learn([]byte("d"), handle, []byte("second"))
		for i := range 6 {
			s, want := []Server{0, other}[i%2], []string{"first", "second"}[i%2]
			if got := string(n.At(s).AppendPath(nil, handle)); got != want {
				t.Errorf("%q of server %d: %q, want %q", h, s, got, want)
			}
		}
	}
}

// TestServerOf: whose handles a transaction has does not depend on who sends it.
func TestServerOf(t *testing.T) {
	client, server := rdma.End{Addr: netip.MustParseAddr("192.0.2.2")}, rdma.End{Addr: netip.MustParseAddr("192.0.2.1")}
	c := &rdma.Connection{Fabric: rdma.RoCEv2, Ends: [2]rdma.End{client, server}}
	call := &transaction.Transaction{Connection: c, Program: nfs3.NFS_PROGRAM}
	want := ServerOf(call)
	mapped := &rdma.Connection{Ends: [2]rdma.End{client, {Addr: netip.MustParseAddr("::ffff:192.0.2.1")}}}
	for name, x := range map[string]*transaction.Transaction{
		"from the other side":               {Connection: &rdma.Connection{Ends: [2]rdma.End{server, client}}, From: 1},
		"a callback":                        {Connection: c, From: 1, Backward: true},
		"a callback over its own TCP":       {Connection: &rdma.Connection{Fabric: rdma.TCP, Ends: [2]rdma.End{server, client}}, Program: 0x40000000},
		"an IPv4 address in an IPv6 socket": {Connection: mapped},
	} {
		if got := ServerOf(x); got != want {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
	}
	other := c.Copy()
	other.Tenant = 1
	for name, x := range map[string]*transaction.Transaction{
		"another network": {Connection: &other}, "the client": {Connection: c, From: 1}, "nobody": {},
	} {
		if ServerOf(x) == want {
			t.Errorf("%s is the same server", name)
		}
	}
	var n Names
	for _, x := range []*transaction.Transaction{call, {Connection: &other}, call, {}, {Connection: mapped}, call} {
		if n.Of(x).server != ServerOf(x) {
			t.Errorf("%+v: %x", x.Connection, n.server)
		}
	}
	if a := testing.AllocsPerRun(100, func() { n.Of(call); n.At(7) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
