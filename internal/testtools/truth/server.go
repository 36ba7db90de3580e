package truth

import (
	"io"
	"slices"
)

// serverTrace collects the events of trace.server.
type serverTrace struct {
	overwritten bool
	present     bool
	requests    []*request
	byXID       map[XID]*request       // the last request with this XID
	bySegment   map[segmentKey]segment // where a Write or Reply segment was offered
	pending     map[string]*request    // segments decoded so far, by completion id
}

// request is one message that the server received.
type request struct {
	xid       XID
	header    uint32
	requested uint32
	noMsg     bool
	read      []ReadSegment
	write     []Segment // Write chunk or Reply chunk: the trace does not tell
	written   []uint32
	program   string
	version   uint32
	procedure string
	serverUS  uint32
	served    bool // svc_process or svc_stats_latency was seen
}

type segmentKey struct {
	handle uint32
	offset uint64
}

type segment struct {
	of    *request
	index int
}

func newServerTrace() *serverTrace {
	return &serverTrace{
		byXID:     make(map[XID]*request),
		bySegment: make(map[segmentKey]segment),
		pending:   make(map[string]*request),
	}
}

func (t *serverTrace) read(r io.Reader) (err error) {
	t.present = true
	t.overwritten, err = scanTrace(r, t.event)
	return err
}

func (t *serverTrace) event(e event) {
	switch e.name {
	case "svcrdma_decode_rseg", "svcrdma_decode_wseg":
		seg, ok := e.segment()
		if !ok {
			return
		}
		key := e.value("cq.id") + "/" + e.value("cid")
		q := t.pending[key]
		if q == nil {
			q = new(request)
			t.pending[key] = q
		}
		if e.name == "svcrdma_decode_rseg" {
			q.read = append(q.read, ReadSegment{Position: e.number("position"), Segment: seg})
		} else {
			q.write = append(q.write, seg)
		}
	case "svcrdma_decode_rqst":
		x, ok := e.xid()
		if !ok {
			return
		}
		key := e.value("cq.id") + "/" + e.value("cid")
		q := t.pending[key]
		delete(t.pending, key)
		if q == nil {
			q = new(request)
		}
		q.xid, q.header, q.requested = x, e.number("hdrlen"), e.number("credits")
		q.noMsg = e.value("proc") == "RDMA_NOMSG"
		t.requests = append(t.requests, q)
		t.byXID[x] = q
		for i, s := range q.write {
			t.bySegment[segmentKey{s.Handle, s.Offset}] = segment{q, i}
		}
	case "svcrdma_encode_wseg":
		// The event names neither XID nor receive context, but a segment
		// is found by its handle and offset.
		seg, ok := e.segment()
		if !ok {
			return
		}
		at, ok := t.bySegment[segmentKey{seg.Handle, seg.Offset}]
		if !ok {
			return
		}
		if at.of.written == nil {
			at.of.written = make([]uint32, len(at.of.write))
		}
		at.of.written[at.index] = seg.Length
	case "svc_process":
		// Requests over TCP have the port in addr, but so may others: a
		// request of lockd or mountd is one whose program is theirs.
		x, ok := e.xid()
		q := t.byXID[x]
		if !ok || q == nil || q.procedure != "" {
			return
		}
		if service := programName(e.value("service")); service == "nfs" || service == "nfsacl" {
			q.program, q.version, q.procedure, q.served = service, e.number("vers"), e.value("proc"), true
		}
	case "svc_stats_latency":
		x, ok := e.xid()
		if q := t.byXID[x]; ok && q != nil {
			q.serverUS, q.served = e.number("execute-us"), true
		}
	}
}

// matches reports whether the server decoded what the client marshalled.
func (q *request) matches(s *Send) bool {
	return q.header == s.Header && q.noMsg == s.NoMsg && slices.Equal(q.read, s.Read) &&
		slices.Equal(q.write, append(slices.Clone(s.Write), s.Reply...))
}

func (q *request) fill(s *Send) {
	s.By += "d"
	s.Written, s.Requested, s.ServerUS = q.written, q.requested, q.serverUS
}

// merge joins both traces. A request that the client did not marshal so gets its own Send, without the mark
// m.
func (t *Truth) merge(c *clientTrace, s *serverTrace) {
	t.Overwritten = c.overwritten || s.overwritten
	t.Connections, t.Calls, t.Others, t.Callbacks = c.connections, c.calls, c.others, c.callbacks
	back := make(map[XID]bool)
	for _, cb := range c.callbacks {
		back[cb.XID] = true
	}
	for _, q := range s.requests {
		call := c.byXID[q.xid]
		if call == nil {
			if back[q.xid] && !q.served {
				continue // the client's reply to a backchannel call
			}
			call = &Call{XID: q.xid, Program: q.program, Version: q.version, Procedure: q.procedure}
			c.byXID[q.xid] = call
			t.Calls = append(t.Calls, call)
		}
		if q.procedure == "" {
			call.Unserved = true
		} else if call.Served == "" && q.procedure != call.Procedure {
			call.Served = q.procedure
		}
		if call.Program == "" {
			call.Program, call.Version = q.program, q.version
		}
		i := slices.IndexFunc(call.Sends, func(s *Send) bool { return !s.Decoded() && q.matches(s) })
		if i < 0 {
			call.Sends = append(call.Sends, &Send{Header: q.header, NoMsg: q.noMsg, Read: q.read, Write: q.write})
			i = len(call.Sends) - 1
		}
		q.fill(call.Sends[i])
	}
}
