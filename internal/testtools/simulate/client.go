package simulate

import (
	"encoding/binary"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// Call is one request of the application, however often it is sent.
type Call struct {
	Index   int
	Op      Operation
	Size    int   // bytes of data
	Issued  int64 // by the application
	Sent    int64 // posted for the first time
	Replied int64 // its reply is there
	Waited  int64 // for a thread of the server
	Served  int64 // by the server

	client     *client
	conn       *connection
	pending    bool   // at the server
	sentOn     uint32 // of the times its connection was made
	xid        uint32
	attempt    uint64
	segments   []rpcrdma.Segment
	refused    int
	delayed    bool  // the server asks the client to wait
	again      int64 // for how long
	delegation *delegation
	arrived    int64
	slot       int
	sequence   uint32
}

// id names a packet of a call, alike in all runs.
func (c *Call) id(role uint32, place, tries uint64) uint64 {
	return uint64(c.client.h.index)<<60 | uint64(c.Index+1)<<32 | uint64(role)<<28 | (place&0xffffff)<<4 | (tries+c.attempt)&attempts
}

// inlineSize is the longest Send in bytes.
const inlineSize = 4096

// client is a host that mounts the server, and its applications.
type client struct {
	n        *network
	h        *host
	conns    []*connection
	next     int // call to be made
	total    int
	xid      uint32
	depth    int
	base     int // of the numbers of its calls
	calls    []*Call
	slots    []bool   // in use
	sequence []uint32 // of each slot
	lines    []*Call  // that wait for a slot
	left     int      // calls of a burst that are not answered
}

// start begins the work.
func (cl *client) start() {
	cl.left = min(cl.depth, cl.total)
	for i := range cl.depth {
		cl.n.at(cl.n.Start+int64(i)*500, cl.issue)
	}
}

// issue makes the next call.
func (cl *client) issue() {
	if cl.next >= cl.total {
		return
	}
	i := cl.base + cl.next
	call := &Call{Index: i, client: cl, Issued: cl.n.now}
	call.conn = cl.conns[cl.next%len(cl.conns)]
	cl.next++
	if o := cl.n.Outage; o != nil && i == o.AtCall {
		cl.n.outage()
	}
	cl.n.draw(call)
	cl.calls = append(cl.calls, call)
	cl.enter(call)
}

// enter takes a slot of the session, if there are sessions.
func (cl *client) enter(call *Call) {
	if !cl.n.NFS4 {
		cl.post(call)
		return
	}
	free := slices.Index(cl.slots, false)
	if free < 0 {
		cl.lines = append(cl.lines, call)
		return
	}
	cl.slots[free] = true
	call.slot = free
	cl.sequence[free]++
	call.sequence = cl.sequence[free]
	cl.post(call)
}

// leave gives the slot to the call that has waited longest.
func (cl *client) leave(call *Call) {
	if !cl.n.NFS4 || call.Op == CreateSession {
		return
	}
	cl.slots[call.slot] = false
	if len(cl.lines) > 0 {
		next := cl.lines[0]
		cl.lines = cl.lines[1:]
		cl.enter(next)
	}
}

// post hands a call to its connection.
func (cl *client) post(call *Call) {
	cl.xid++
	call.xid = cl.xid
	call.conn.backlog = append(call.conn.backlog, call)
	call.conn.pump()
}

// asked is the number of credits that a call asks for.
func (n *network) asked() uint32 {
	if c := n.Credits; c != nil && c.Asked > 0 {
		return uint32(c.Asked)
	}
	return 128
}

// send sends a call.
func (c *connection) send(call *Call) {
	if call.Sent == 0 {
		call.Sent = c.n.now
	}
	c.open = append(c.open, call)
	h := rpcrdma.Header{XID: call.xid, Version: rpcrdma.Version1, Credits: c.n.asked(), Type: rpcrdma.TypeMsg}
	body := c.n.callMessage(call)
	call.segments = nil
	for off := 0; off < call.Size; off += maxSegment {
		call.segments = append(call.segments, rpcrdma.Segment{
			Handle: call.xid<<8 | uint32(off/maxSegment) + c.times<<4, Length: uint32(min(call.Size-off, maxSegment)),
			Offset: uint64(call.Index+1)<<32 | uint64(off),
		})
	}
	switch {
	case call.Op == Write:
		for _, s := range call.segments {
			h.Reads = append(h.Reads, rpcrdma.ReadSegment{Position: uint32(len(body)), Segment: s})
		}
	case call.Op == Read && !c.n.ReadRead:
		h.Writes = []rpcrdma.WriteChunk{call.segments}
	}
	c.post(call, append(h.Append(nil), body...))
}

// post sends a call, and again if the client's timer says so.
func (c *connection) post(call *Call, data []byte) {
	c.ends[0].add(&request{kind: sendRequest, data: data, call: call, role: roleCall})
	o := c.n.Outage
	if o == nil || o.Timer == 0 {
		return
	}
	attempt, times := call.attempt, c.times
	c.n.after(o.Timer, func() {
		if call.attempt == attempt && c.times == times && slices.Contains(c.open, call) {
			c.post(call, data)
		}
	})
}

// renewed reports whether the connection was made anew since a call came.
func (c *connection) renewed(call *Call) bool { return c.times != call.sentOn }

// maxSegment is the longest segment of a chunk in bytes.
const maxSegment = 256 << 10

// atClient takes a reply.
func (c *connection) atClient(m []byte, call *Call) {
	if call.Op == recalled {
		call.client.giveBack(call)
		return
	}
	if !slices.Contains(c.open, call) {
		return // answered before the connection broke
	}
	c.granted = int(binary.BigEndian.Uint32(m[8:]))
	if c.n.ReadRead && call.Op == Read && !call.delayed {
		c.fetch(call)
		return
	}
	c.finish(call)
}

// fetch reads the data of a reply, and tells the server that it is done.
func (c *connection) fetch(call *Call) {
	left := len(call.segments)
	for _, s := range call.segments {
		c.ends[0].add(&request{
			kind: readRequest, length: int(s.Length), handle: s.Handle, offset: s.Offset, call: call, role: roleRead,
			done: func() {
				if left--; left > 0 {
					return
				}
				h := rpcrdma.Header{XID: call.xid, Version: rpcrdma.Version1, Credits: c.n.asked(), Type: rpcrdma.TypeDone}
				c.ends[0].add(&request{kind: sendRequest, data: h.Append(nil), call: call, role: roleDone})
				c.finish(call)
			},
		})
	}
}

// finish ends a call.
func (c *connection) finish(call *Call) {
	i := slices.Index(c.open, call)
	if i < 0 {
		return
	}
	c.open = slices.Delete(c.open, i, i+1)
	cl := call.client
	cl.leave(call)
	c.pump()
	if call.delayed {
		call.delayed = false
		call.attempt++
		cl.n.after(call.again, func() { cl.enter(call) })
		return
	}
	call.Replied = c.n.now
	switch {
	case call.Op == Delegreturn || call.Op == CreateSession:
	case cl.n.Burst > 0 && cl.base == 0:
		cl.burst(call)
	default:
		cl.n.after(cl.n.think(cl, call), cl.issue)
	}
}

// burst makes the next calls at once, when all before have been answered.
func (cl *client) burst(call *Call) {
	if cl.left--; cl.left > 0 {
		return
	}
	cl.left = min(cl.depth, cl.total-cl.next)
	cl.n.after(cl.n.think(cl, call)+cl.n.around(cl.n.Burst, 0.3, "burst", uint64(call.Index)), func() {
		for range cl.left {
			cl.issue()
		}
	})
}

// createSession asks for a session, before anything else.
func (cl *client) createSession(c *connection) {
	cl.xid++
	c.backlog = slices.Insert(c.backlog, 0, &Call{Index: createCalls, Op: CreateSession, client: cl, conn: c, xid: cl.xid})
}

// think is the time until the application makes its next call.
func (n *network) think(cl *client, call *Call) int64 {
	d := n.around(2000, 0.3, "application", uint64(call.Index))
	if cl.base == holderCalls {
		d += 5_000_000
	}
	if idle := n.ClientIdle; idle != nil && cl.base == 0 {
		d += n.around(idle.Think, 0.3, "think", uint64(call.Index))
	}
	return d
}
