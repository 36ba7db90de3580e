package simulate

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
)

// Sums are what a run took, of the calls of the first client. Times are in nanoseconds.
type Sums struct {
	Calls   int   `json:"calls"`
	App     int64 `json:"app_ns"`     // from the application's request to the reply
	Latency int64 `json:"latency_ns"` // from the first sending to the reply
	Waited  int64 `json:"thread_wait_ns"`
	Served  int64 `json:"service_ns"`
	Wall    int64 `json:"wall_ns"` // from the first request to the last reply
	Lost    int   `json:"lost"`
	Resent  int   `json:"resent"`
	Marked  int   `json:"marked"`
}

// Result is what a run gave.
type Result struct {
	Config Config
	Sums   Sums
	Calls  []*Call // of the first client
	others []*Call // of those that do the same work
	taps   [Points][]record
}

// Packets is how many packets a capture point saw.
func (r *Result) Packets(p Point) int { return len(r.taps[p]) }

// WritePcap writes the capture of a point.
func (r *Result) WritePcap(w io.Writer, p Point) error { return write(w, r.taps[p], r.Config.Snap) }

// Run runs the simulation.
func Run(c Config) *Result {
	n := &network{Config: &c}
	n.seed, n.now = c.Seed, c.Start-setupTime
	if c.PathDelay != nil {
		n.now -= 4 * c.PathDelay.OneWay
	}
	n.server = n.host(0, "10.1.0.1")
	threads := c.Threads
	if c.ServerThreads != nil {
		threads = c.ServerThreads.Threads
	}
	n.nfsd = &nfsd{n: n, threads: threads}
	depth := c.Depth
	if c.OneAtATime != nil {
		depth = 1
	}
	first := n.mount(1, c.Connections, depth, c.Calls, 0)
	var others []*client
	for i := 1; i < c.Clients; i++ {
		others = append(others, n.mount(i+2, c.Connections, depth, c.Calls, otherCalls*i))
	}
	if c.Recall != nil {
		n.nfsd.holder = n.mount(holderIndex, 1, 1, c.Calls/10, holderCalls)
	}
	if o := c.Neighbour; o != nil {
		n.mount(2, 1, o.Depth, o.Calls, neighbourCalls)
	}
	n.run()
	r := &Result{Config: c, Calls: first.calls, Sums: sums(first.calls)}
	for _, o := range others {
		r.others = append(r.others, o.calls...)
	}
	r.Sums.Lost, r.Sums.Resent, r.Sums.Marked = n.lost, n.resent, n.marked
	n.pauseFrames(c.Start + r.Sums.Wall)
	for i := range n.taps {
		slices.SortStableFunc(n.taps[i], func(a, b record) int { return cmp.Compare(a.time, b.time) })
	}
	r.taps = n.taps
	return r
}

// setupTime is for how long a run sets up its connections.
const setupTime = 1_000_000

// First numbers of the calls of other clients.
const (
	neighbourCalls = 1 << 20
	holderCalls    = 1 << 21
	recallCalls    = 1 << 22 // of the server
	otherCalls     = 1 << 23
	createCalls    = 1 << 27 // that create a session
)

// holderIndex is the client that has delegations.
const holderIndex = 99

func (n *network) host(index int, addr string) *host {
	return &host{n: n, index: index, addr: netip.MustParseAddr(addr), cnpSent: make(map[*end]int64)}
}

// mount makes a client.
func (n *network) mount(index, connections, depth, calls, base int) *client {
	h := n.host(index, fmt.Sprintf("10.1.1.%d", index))
	n.clients = append(n.clients, h)
	cl := &client{n: n, h: h, depth: depth, total: calls, base: base}
	cl.xid = stream(n.seed, "xid", uint64(index)).Uint32()
	cl.slots = make([]bool, n.sessionSlots(base > 0))
	cl.sequence = make([]uint32, len(cl.slots))
	n.mounts = append(n.mounts, cl)
	for i := range connections {
		c := &connection{n: n, client: cl, index: i, granted: int(n.granted())}
		cl.conns = append(cl.conns, c)
		if n.Handshake {
			n.after(0, c.setup)
		} else {
			c.connect()
			c.up = true
		}
	}
	cl.start()
	return cl
}

// outage takes the server away, and brings it back.
func (n *network) outage() {
	end := n.now + n.Outage.For
	if n.Outage.Hang {
		n.nfsd.hung = true
		n.at(end, func() {
			n.nfsd.hung = false
			n.nfsd.start()
		})
		return
	}
	n.cut(true)
	n.at(end, func() { n.cut(false) })
	lost := n.now + n.ackTimeout()*int64(n.Retries+1)
	n.at(min(lost, end-reconnectTime), func() {
		for _, cl := range n.mounts {
			for _, c := range cl.conns {
				c.broken()
			}
		}
	})
}

// cut begins or ends an outage.
func (n *network) cut(down bool) {
	if n.Outage.Path {
		n.broken = down
		return
	}
	n.server.down = down
	if down {
		n.nfsd.line = nil
		for _, e := range n.server.ends {
			e.dead = true
		}
	}
}

func sums(calls []*Call) Sums {
	var s Sums
	var first, last int64
	for _, c := range calls {
		if c.Replied == 0 {
			continue
		}
		if s.Calls == 0 {
			first = c.Issued
		}
		s.Calls++
		s.App += c.Replied - c.Issued
		s.Latency += c.Replied - c.Sent
		s.Waited += c.Waited
		s.Served += c.Served
		first, last = min(first, c.Issued), max(last, c.Replied)
	}
	s.Wall = last - first
	return s
}
