package kernel

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// made is a transaction of an RPC NULL call as a decoder would give it.
func made(xid uint32, client string, start, total int64) *rpc.View {
	tx := &transaction.Transaction{
		Connection: &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}, XID: xid, Named: true, Program: 100003, Version: 3,
	}
	tx.Connection.Ends[0].Addr = netip.MustParseAddr(client)
	tx.Connection.Ends[1].Addr = netip.MustParseAddr("192.0.2.1")
	tx.Call.First = rdma.Ref{Time: start, Number: 1}
	tx.Call.Last = tx.Call.First
	tx.Call.Transport, tx.Call.Header.Version = true, rpcrdma.Version1
	if total >= 0 {
		tx.Reply.First = rdma.Ref{Time: start + total, Number: 2}
		tx.Reply.Last = tx.Reply.First
		tx.Reply.Transport = true
	} else {
		tx.State = transaction.NoReply
	}
	v := &rpc.View{}
	v.Set(tx)
	return v
}

func stamp(ns int64) string { return fmt.Sprintf("%d.%09d", ns/1e9, ns%1e9) }

// TestReusedXIDs plays calls of two clients whose XIDs come again and again, each traced with its own clock,
// some of them sent twice, and expects every record to find its transaction.
func TestReusedXIDs(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		const base = 1_795_000_000_000_000_000
		clients := []string{"192.0.2.2", "192.0.2.3"}
		offset := []int64{rnd.Int64N(1e12), rnd.Int64N(1e12)} // trace time = time since base + offset
		lines := make([][]string, 2)
		var views []*rpc.View
		want := make(map[int64]int64) // outside of a call, by its total, which no other call has
		for c, addr := range clients {
			lines[c] = append(lines[c], fmt.Sprintf("k-1 [000] ..... %s: xprtrdma_inline_thresh: %s:999 -> 192.0.2.1:20049 neg", stamp(offset[c]), addr))
			now := int64(1e9)
			for n := range 60 {
				xid := uint32(1000 + rnd.IntN(8)) // the same for both clients
				if n < 30 {
					xid = uint32(5000 + n + 100*c) // some that tell the clocks
				}
				now += 20e6 + rnd.Int64N(20e6)
				before, after := 20e3+rnd.Int64N(300e3), 20e3+rnd.Int64N(300e3)
				total := (1e6+rnd.Int64N(5e6))/2000*2000 + int64(2*n+c)*1000000007%1000*2
				for want[total] != 0 {
					total += 2
				}
				backlog := rnd.Int64N(2e3) * 1000
				sent := now
				sends := 1
				if n > 30 && rnd.IntN(6) == 0 { // the first transmission is lost
					views = append(views, made(xid, addr, base+sent+before, -1))
					now += 10e6
					sent, sends = now, 2
				}
				rtt := (before + total + after + 999) / 1000
				end := sent + rtt*1000 + 30e3
				execute := (end-sent)/1000 + backlog/1000
				for range sends {
					lines[c] = append(lines[c], fmt.Sprintf("t-1 [000] ..... %s: xprtrdma_marshal: task:1@4 xid=0x%08x hdr=28", stamp(sent+offset[c]-1e3), xid))
				}
				lines[c] = append(lines[c],
					fmt.Sprintf("t-1 [000] ..... %s: xprtrdma_reply: task:1@4 xid=0x%08x credits=64", stamp(sent+offset[c]+rtt*1000), xid),
					fmt.Sprintf("t-1 [000] ..... %s: rpc_stats_latency: task:1@4 xid=0x%08x nfsv3 NULL backlog=%d rtt=%d execute=%d", stamp(end+offset[c]), xid, backlog/1000, rtt, execute))
				views = append(views, made(xid, addr, base+sent+before, total))
				want[total] = rtt*1000 - total
				now = end
			}
		}
		slices.SortStableFunc(views, func(a, b *rpc.View) int { return int(a.Tx.First().Time - b.Tx.First().Time) })
		j := New(Options{})
		for c := range clients {
			if err := j.ReadTrace(clients[c], strings.NewReader(strings.Join(lines[c], "\n")+"\n")); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range views {
			j.Add(v)
		}
		r := j.Result()
		if n := r.Clients; n.Records != 120 || n.Joined != 120 || n.Ambiguous != 0 {
			t.Fatalf("seed %d: %+v", seed, n)
		}
		for i := range j.calls {
			w := &j.wires[j.calls[i].wire]
			if got := j.calls[i].rtt - w.total; got != want[w.total] {
				t.Errorf("seed %d: call %d of %s, xid %d: outside %d, want %d", seed, i, clients[j.calls[i].source], j.calls[i].xid, got, want[w.total])
			}
			if want := clients[j.calls[i].source]; j.addrs.value(w.client).String() != want {
				t.Errorf("seed %d: a call of %s has a transaction of %s", seed, want, j.addrs.value(w.client))
			}
		}
		for c, k := range r.Clocks {
			if want := base - offset[c]; k.Uncertainty < 0 || max(k.Offset-want, want-k.Offset) > k.Uncertainty+1 {
				t.Errorf("seed %d: clock %d is off by %d ± %d", seed, c, k.Offset-want, k.Uncertainty)
			}
		}
		if r.ClientOrder.Violations != 0 {
			t.Errorf("seed %d: %v", seed, r.ClientOrder.List)
		}
	}
}

func TestViolationsAreListed(t *testing.T) {
	j := New(Options{})
	var b strings.Builder
	for x := 1; x <= maxListed+5; x++ {
		fmt.Fprintf(&b, "t-1 [000] ..... 1.0: rpc_stats_latency: task:1@4 xid=0x%x nfsv3 NULL backlog=1 rtt=100 execute=120\n", x)
	}
	if err := j.ReadTrace("t", strings.NewReader(b.String())); err != nil {
		t.Fatal(err)
	}
	for x := range uint32(maxListed + 5) {
		total := int64(101_000)
		if x == 0 {
			total = 100_999 // within the kernel's microsecond
		}
		j.Add(made(x+1, "192.0.2.2", int64(x)*1e6, total))
	}
	o := j.Result().ClientOrder
	if o.Violations != maxListed+4 || len(o.List) != maxListed || o.List[0].XID != 2 || o.List[0].Wire != 101_000 || o.List[0].Kernel != 100_000 {
		t.Errorf("%d violations, %d listed, %+v", o.Violations, len(o.List), o.List[0])
	}
	if o.Correlation != nil {
		t.Errorf("a rank correlation of round trips that are all the same: %v", *o.Correlation)
	}
}

// TestOverTCP: the round trip of a call over TCP begins when the last bytes of the call are given to the socket and ends with the XID of the
// reply. The clock of a server is known by its own events.
func TestOverTCP(t *testing.T) {
	j := New(Options{})
	const trace = "t-1 [000] ..... 1.000300000: rpc_stats_latency: task:1@4 xid=0x1 nfsv3 NULL backlog=1 rtt=100 execute=120\n" +
		"n-1 [000] ..... 1.000150000: svc_process: addr=192.0.2.2:772 xid=0x1 service=nfsd vers=3 proc=NULL\n" +
		"n-1 [000] ..... 1.000190000: svc_stats_latency: xid=0x1 server=192.0.2.1:2049 client=192.0.2.2:772 proc=NULL execute-us=40\n"
	if err := j.ReadTrace("t", strings.NewReader(trace)); err != nil {
		t.Fatal(err)
	}
	v := made(1, "192.0.2.2", 100_000, 150_000) // as long as the client's trace cannot have it
	v.Tx.Connection.Fabric = rdma.TCP
	v.Tx.Call.Last.Time += 60_000
	j.Add(v)
	r := j.Result()
	if r.ClientOrder.Violations != 0 {
		t.Errorf("%v", r.ClientOrder.List)
	}
	for _, c := range r.Clocks {
		switch {
		case c.Side == "client" && c.Known:
			t.Errorf("the clock of the client: %+v", c)
		case c.Side == "server" && (!c.Known || c.Offset != -999_965_000 || c.Uncertainty != 25_000):
			t.Errorf("the clock of the server: %+v", c)
		}
	}
	v.Tx.Call.Last.Time -= 61_000 // 151 µs to the reply
	j = New(Options{})
	if err := j.ReadTrace("t", strings.NewReader(trace)); err != nil {
		t.Fatal(err)
	}
	if j.Add(v); j.Result().ClientOrder.Violations != 1 {
		t.Error("a round trip that is too short is not listed")
	}
	v.Tx.Reply.First.Time -= 60_000 // a long reply
	j = New(Options{})
	if err := j.ReadTrace("t", strings.NewReader(trace)); err != nil {
		t.Fatal(err)
	}
	if j.Add(v); j.Result().ClientOrder.Violations != 0 {
		t.Errorf("%v", j.Result().ClientOrder.List)
	}
}

// TestSeenAgain: a call with packets that were seen again does not tell the clock, as others do.
func TestSeenAgain(t *testing.T) {
	j := New(Options{})
	var trace strings.Builder
	for x := 1; x <= 3; x++ {
		at := int64(x) * 1e9
		fmt.Fprintf(&trace, "t-1 [000] ..... %s: xprtrdma_marshal: task:1@4 xid=0x%x hdr=28\n", stamp(at), x)
		fmt.Fprintf(&trace, "t-1 [000] ..... %s: xprtrdma_reply: task:1@4 xid=0x%x credits=64\n", stamp(at+300_000), x)
		fmt.Fprintf(&trace, "t-1 [000] ..... %s: rpc_stats_latency: task:1@4 xid=0x%x nfsv3 NULL backlog=1 rtt=300 execute=320\n", stamp(at+320_000), x)
	}
	if err := j.ReadTrace("t", strings.NewReader(trace.String())); err != nil {
		t.Fatal(err)
	}
	for x := range int64(3) {
		v := made(uint32(x+1), "192.0.2.2", (x+1)*1e9+50_000, 200_000)
		if x == 1 { // the client took another copy of the reply
			v.Tx.Reply.Last.Time, v.Tx.Retransmits = v.Tx.Reply.Last.Time+50e6, 1
		}
		j.Add(v)
	}
	c := j.Result().Clocks[0]
	if !c.Known || c.Calls != 2 || c.Offset != 0 || c.Uncertainty != 50_000 {
		t.Errorf("%+v", c)
	}
}

// TestUnreadable makes sure that events without the numbers that they are read for are counted.
func TestUnreadable(t *testing.T) {
	const whole = "t-1 [000] ..... 1.0: rpc_stats_latency: task:1@4 xid=0x%s nfsv3 NULL backlog=1 rtt=%s execute=120\n"
	for _, c := range []struct {
		text   string
		unread uint64
		calls  int
	}{
		{fmt.Sprintf(whole, "1", "100"), 0, 1},
		{fmt.Sprintf(whole, "1", "-5"), 1, 0},
		{fmt.Sprintf(whole, "1", "99999999999999999999"), 1, 0},
		{fmt.Sprintf(whole, "z", "100"), 1, 0},
		{"t-1 [000] ..... 1.0: svc_stats_latency: xid=0x1 server=a client=b proc=READ execute-us=x\n", 1, 0},
		// The file ends within a number.
		{strings.TrimSuffix(fmt.Sprintf(whole, "1", "100"), "0\n"), 1, 0},
	} {
		j := New(Options{})
		if err := j.ReadTrace("t", strings.NewReader(c.text)); err != nil {
			t.Fatal(err)
		}
		if f := j.Result().Files[0]; f.Unread != c.unread || f.Calls != c.calls {
			t.Errorf("%q: %+v", c.text, f)
		}
	}
}

// TestLimits makes sure that what is given up is counted, and that an XID that
// comes without end does not take time without end.
func TestLimits(t *testing.T) {
	var b strings.Builder
	for range 2000 {
		b.WriteString("t-1 [000] ..... 1.0: rpc_stats_latency: task:1@4 xid=0x1 nfsv3 NULL backlog=1 rtt=100 execute=120\n" +
			"t-1 [000] ..... 1.0: svc_stats_latency: xid=0x1 client=192.0.2.2:0 proc=NULL execute-us=10\n")
	}
	j := New(Options{Calls: 1000})
	if err := j.ReadTrace("t", strings.NewReader(b.String())); err != nil {
		t.Fatal(err)
	}
	for i := range int64(1500) {
		j.Add(made(1, "192.0.2.2", i*1e6, 1000))
	}
	r := j.Result()
	if c := r.Counts; c.CallsBeyond != 1000 || c.RequestsBeyond != 1000 || c.TransactionsBeyond != 500 || c.Transactions != 1500 {
		t.Errorf("%+v", c)
	}
	if r.Clients.Ambiguous == 0 || r.Clients.Joined != 0 {
		t.Errorf("%+v", r.Clients)
	}
}

func TestAddAllocatesLittle(t *testing.T) {
	j := New(Options{})
	read(t, j, "rocev2-nfs41-recall.trace.client", "rocev2-nfs41-recall.trace.server", "rocev2-nfs41-recall.mountstats")
	n, seen := 0.0, 0
	each(t, filepath.Join(sampleDir, "rocev2-nfs41-recall.pcap"), func(v *rpc.View) {
		j.Add(v)
		n = max(n, testing.AllocsPerRun(500, func() { j.Add(v) }))
		seen++
	})
	if seen == 0 || n >= 1 { // the list of transactions grows occasionally
		t.Errorf("%.2f allocations a transaction", n)
	}
}
