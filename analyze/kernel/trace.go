package kernel

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/kernel/ftrace"
)

// call is one RPC in the trace of a client. Times come from its trace
// clock.
type call struct {
	xid    uint32
	older  int32  // record with the same XID before this one; -1 if none
	source uint16 // index in Join.files
	op     uint16
	clnt   uint32 // number of the rpc_clnt
	sends  uint16 // xprtrdma_marshal: how often it was put together
	done   bool   // rpc_stats_latency was seen: the rest is known

	marshal int64 // last xprtrdma_marshal; 0 if not seen
	reply   int64 // last xprtrdma_reply; 0 if not seen
	end     int64 // rpc_stats_latency
	// Of rpc_stats_latency, with the kernel's microseconds as nanoseconds.
	backlog, rtt, execute int64

	wire  int32 // the transaction that it is, in Join.wires; -1 if none
	wires uint16
}

// request is one RPC in the trace of a server.
type request struct {
	xid     uint32
	older   int32
	source  uint16
	op      uint16
	client  uint16 // address, in Join.addrs; 0 if unknown
	done    bool   // svc_stats_latency was seen
	decode  int64  // svcrdma_decode_rqst; 0 if not seen
	process int64  // svc_process; 0 if not seen
	end     int64  // svc_stats_latency
	execute int64
	wire    int32
	wires   uint16
}

// tracer puts the events of one file into a Join.
type tracer struct {
	j      *Join
	source uint16
	own    map[uint16]bool
	unread uint64 // events without the numbers that are wanted of them
}

func (t *tracer) event(e ftrace.Event) {
	switch e.Name {
	case "xprtrdma_inline_thresh":
		// 192.0.2.2:50228 -> 192.0.2.1:20049 neg …
		if len(e.Fields) > 0 {
			if a, err := netip.ParseAddrPort(e.Fields[0]); err == nil && len(t.own) < maxNames {
				t.own[t.j.addrs.number(a.Addr().Unmap())] = true
			}
		}
	case "xprtrdma_marshal":
		if x, ok := e.XID(); ok {
			if c := t.open(x); c != nil {
				c.marshal = e.Time
				c.sends = min(c.sends+1, 1<<15)
			}
		}
	case "xprtrdma_reply":
		if x, ok := e.XID(); ok {
			if c := t.call(x); c != nil && !c.done {
				c.reply = e.Time
			}
		}
	case "rpc_stats_latency":
		t.latency(&e)
	case "svcrdma_decode_rqst":
		if x, ok := e.XID(); ok {
			if q := t.newRequest(x); q != nil {
				q.decode = e.Time
			}
		}
	case "svc_process":
		t.process(&e)
	case "svc_stats_latency":
		t.served(&e)
	}
}

// call is the newest record of this file with an XID.
func (t *tracer) call(x uint32) *call {
	i, ok := t.j.callAt[x]
	if !ok || t.j.calls[i].source != t.source {
		return nil
	}
	return &t.j.calls[i]
}

// open returns the record of a call that has not ended; nil if there is no
// room for another one.
func (t *tracer) open(x uint32) *call {
	if c := t.call(x); c != nil && !c.done {
		return c
	}
	j := t.j
	if len(j.calls) >= j.limit {
		j.counts.CallsBeyond++
		return nil
	}
	older, ok := j.callAt[x]
	if !ok {
		older = -1
	}
	j.callAt[x] = int32(len(j.calls))
	j.calls = append(j.calls, call{xid: x, older: older, source: t.source, wire: -1})
	return &j.calls[len(j.calls)-1]
}

// latency reads
//
//	task:… xid=0x… nfsv3 READ backlog=… rtt=… execute=… xprt_id=1
func (t *tracer) latency(e *ftrace.Event) {
	x, ok := e.XID()
	if !ok {
		t.unread++
		return
	}
	var program, procedure string
	for i, f := range e.Fields {
		if strings.HasPrefix(f, "xid=") && i+2 < len(e.Fields) {
			program, procedure = e.Fields[i+1], e.Fields[i+2]
		}
	}
	backlog, ok1 := micros(e, "backlog")
	rtt, ok2 := micros(e, "rtt")
	execute, ok3 := micros(e, "execute")
	if !ok1 || !ok2 || !ok3 {
		t.unread++
		return
	}
	c := t.open(x)
	if c == nil {
		return
	}
	name, version := splitService(program)
	c.op = t.j.names.number(operation{name, version, strings.Clone(bounded(procedure))})
	c.clnt = clnt(e)
	c.done, c.end, c.backlog, c.rtt, c.execute = true, e.Time, backlog, rtt, execute
}

// clnt reads the number of the rpc_clnt from "task:00000016@00000004".
func clnt(e *ftrace.Event) uint32 {
	_, text, _ := strings.Cut(e.Value("task"), "@")
	n, _ := strconv.ParseUint(text, 16, 32)
	return uint32(n)
}

// awaited reports that the client waited for a reply. For some calls it does not, such as the NULL that ends
// an RPCSEC_GSS context; their round trip is zero.
func (c *call) awaited() bool { return c.done && c.rtt > 0 }

func micros(e *ftrace.Event, key string) (int64, bool) {
	n, ok := e.Number(key, 64)
	return int64(n) * 1000, ok && n < 1<<62/1000
}

// bounded keeps names short: they come from a file.
func bounded(s string) string { return s[:min(len(s), 64)] }

// splitService takes "nfsaclv3" apart and gives the program the name that it
// has in transactions.
func splitService(s string) (program string, version uint32) {
	s = bounded(s)
	if i := strings.LastIndexByte(s, 'v'); i > 0 {
		if n, err := strconv.ParseUint(s[i+1:], 10, 32); err == nil {
			s, version = s[:i], uint32(n)
		}
	}
	return programName(s), version
}

func programName(s string) string {
	switch s {
	case "nfsd":
		return "nfs"
	case "lockd":
		return "nlm"
	case "statd":
		return "nsm"
	}
	return strings.Clone(bounded(s))
}

func (t *tracer) newRequest(x uint32) *request {
	j := t.j
	if len(j.requests) >= j.limit {
		j.counts.RequestsBeyond++
		return nil
	}
	older, ok := j.reqAt[x]
	if !ok {
		older = -1
	}
	j.reqAt[x] = int32(len(j.requests))
	j.requests = append(j.requests, request{xid: x, older: older, source: t.source, wire: -1})
	return &j.requests[len(j.requests)-1]
}

// request finds the newest record of this file with an XID for which want holds. Few are examined: the same
// XID is rarely under way twice.
func (t *tracer) request(x uint32, want func(*request) bool) *request {
	i, ok := t.j.reqAt[x]
	for n := 0; ok && i >= 0 && n < 8; n++ {
		q := &t.j.requests[i]
		if q.source == t.source && !q.done && want(q) {
			return q
		}
		i = q.older
	}
	return nil
}

// process reads
//
//	addr=192.0.2.2 xid=0x… service=nfsd vers=3 proc=READ
func (t *tracer) process(e *ftrace.Event) {
	x, ok := e.XID()
	if !ok {
		return
	}
	q := t.request(x, func(q *request) bool { return q.op == 0 })
	if q == nil {
		if q = t.newRequest(x); q == nil { // over TCP, say
			return
		}
	}
	version, _ := e.Number("vers", 32)
	q.op = t.j.names.number(operation{programName(e.Value("service")), uint32(version), strings.Clone(bounded(e.Value("proc")))})
	q.client, q.process = t.j.addr(e.Value("addr")), e.Time
}

// addr reads an address with or without a port, IPv6 in brackets or not.
func (j *Join) addr(s string) uint16 {
	if a, err := netip.ParseAddr(s); err == nil {
		return j.addrs.number(a.Unmap())
	}
	if a, err := netip.ParseAddrPort(s); err == nil {
		return j.addrs.number(a.Addr().Unmap())
	}
	return 0
}

// served reads
//
//	xid=0x… server=192.0.2.1:20049 client=192.0.2.2:0 proc=READ execute-us=1438
func (t *tracer) served(e *ftrace.Event) {
	x, ok := e.XID()
	us, ok2 := micros(e, "execute-us")
	if !ok || !ok2 {
		t.unread++
		return
	}
	q := t.request(x, func(*request) bool { return true })
	if q == nil {
		if q = t.newRequest(x); q == nil {
			return
		}
	}
	q.done, q.end, q.execute = true, e.Time, us
	if q.client == 0 {
		q.client = t.j.addr(e.Value("client"))
	}
}
