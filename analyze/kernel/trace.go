package kernel

import (
	"github.com/rpcrdma/toolkit/capture/ftrace"
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

func (t *tracer) event(e *ftrace.Event) {
	switch e.Kind {
	case ftrace.Threshold:
		if a := e.Local.Addr(); a.IsValid() && len(t.own) < maxNames {
			t.own[t.j.addrs.number(a)] = true
		}
	case ftrace.Marshal:
		if e.Has(ftrace.XID) {
			if c := t.open(e.XID); c != nil {
				c.marshal = e.Time
				c.sends = min(c.sends+1, 1<<15)
			}
		}
	case ftrace.Reply:
		if e.Has(ftrace.XID) {
			if c := t.call(e.XID); c != nil && !c.done {
				c.reply = e.Time
			}
		}
	case ftrace.Latency:
		t.latency(e)
	case ftrace.Request:
		if e.Has(ftrace.XID) {
			if q := t.newRequest(e.XID); q != nil {
				q.decode = e.Time
			}
		}
	case ftrace.Process:
		t.process(e)
	case ftrace.Served:
		t.served(e)
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
	if !e.Has(ftrace.XID | ftrace.Times) {
		t.unread++
		return
	}
	c := t.open(e.XID)
	if c == nil {
		return
	}
	c.op = t.j.operation(e)
	c.clnt = e.Client
	c.done, c.end, c.backlog, c.rtt, c.execute = true, e.Time, int64(e.Backlog)*1000, int64(e.RoundTrip)*1000, int64(e.Execute)*1000
}

// operation is the number of what an event calls.
func (j *Join) operation(e *ftrace.Event) uint16 {
	return j.names.number(operation{ftrace.ProgramName(string(bounded(e.Program))), e.Version, string(bounded(e.Procedure))})
}

// awaited reports that the client waited for a reply. For some calls it does not, such as the NULL that ends
// an RPCSEC_GSS context; their round trip is zero.
func (c *call) awaited() bool { return c.done && c.rtt > 0 }

// bounded keeps names short: they come from a file.
func bounded(s []byte) []byte { return s[:min(len(s), 64)] }

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
	if !e.Has(ftrace.XID) {
		return
	}
	q := t.request(e.XID, func(q *request) bool { return q.op == 0 })
	if q == nil {
		if q = t.newRequest(e.XID); q == nil { // over TCP, say
			return
		}
	}
	q.op = t.j.operation(e)
	q.client, q.process = t.j.addr(e), e.Time
}

// addr is the number of the address of the peer.
func (j *Join) addr(e *ftrace.Event) uint16 {
	if a := e.Peer.Addr(); a.IsValid() {
		return j.addrs.number(a)
	}
	return 0
}

// served reads
//
//	xid=0x… server=192.0.2.1:20049 client=192.0.2.2:0 proc=READ execute-us=1438
func (t *tracer) served(e *ftrace.Event) {
	if !e.Has(ftrace.XID | ftrace.Execution) {
		t.unread++
		return
	}
	q := t.request(e.XID, func(*request) bool { return true })
	if q == nil {
		if q = t.newRequest(e.XID); q == nil {
			return
		}
	}
	q.done, q.end, q.execute = true, e.Time, int64(e.Executed)*1000
	if q.client == 0 {
		q.client = t.j.addr(e)
	}
}
