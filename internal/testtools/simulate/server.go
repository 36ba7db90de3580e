package simulate

import (
	"cmp"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// nfsd is the server: threads that take calls in the order in which they come.
type nfsd struct {
	n       *network
	threads int
	busy    int
	line    []job
	hung    bool
	holder  *client // of delegations
	recalls int
}

type job struct {
	c    *connection
	e    *end // the server's queue pair
	call *Call
}

// readSize is the most that the server asks for with one Read, in bytes.
const readSize = 64 << 10

// take queues a call.
func (s *nfsd) take(c *connection, call *Call) {
	if call.Op == recalled || call.pending && !call.conn.renewed(call) {
		return // a callback's reply, or a call that is under way
	}
	call.pending, call.sentOn = true, c.times
	s.n.after(wakeTime, func() {
		call.arrived = s.n.now
		s.line = append(s.line, job{c, c.ends[1], call})
		s.start()
	})
}

// wakeTime is what a host needs to wake a thread.
const wakeTime = 1500

// start gives calls to threads that are free.
func (s *nfsd) start() {
	for s.busy < s.threads && len(s.line) > 0 && !s.hung {
		j := s.line[0]
		s.line = s.line[1:]
		if j.e.dead || s.n.server.down {
			continue
		}
		s.busy++
		j.call.Waited += s.n.now - j.call.arrived
		s.pull(j)
	}
}

// pull reads the call's data with RDMA Reads; the thread waits.
func (s *nfsd) pull(j job) {
	if j.call.Op != Write {
		s.serve(j)
		return
	}
	left := 0
	for _, seg := range j.call.segments {
		for off := 0; off < int(seg.Length); off += readSize {
			left++
			j.e.add(&request{
				kind: readRequest, length: min(int(seg.Length)-off, readSize), handle: seg.Handle,
				offset: seg.Offset + uint64(off), call: j.call, role: roleRead,
				done: func() {
					if left--; left == 0 {
						s.serve(j)
					}
				},
			})
		}
	}
}

// serve works, then answers.
func (s *nfsd) serve(j job) {
	n := s.n
	if s.recall(j) {
		return
	}
	d := n.service(j.call)
	if w := n.AskedToWait; w != nil && j.call.attempt < uint64(w.Times) && n.chance(w.Rate, "asked to wait", uint64(j.call.Index)) {
		j.call.delayed, j.call.again = true, w.Wait
		d = 10_000
	}
	j.call.Served += d
	n.after(d, func() {
		s.busy--
		if !j.e.dead && !n.server.down {
			s.reply(j)
		}
		s.start()
	})
}

// granted is the number of credits that a reply grants.
func (n *network) granted() uint32 {
	c := n.Credits
	switch {
	case c == nil:
		return uint32(cmp.Or(n.Granted, 128))
	case c.Asked > 0:
		return uint32(min(c.Asked, 128)) // what was asked for
	}
	return uint32(c.Granted)
}

// reply writes the data, and sends the reply.
func (s *nfsd) reply(j job) {
	call := j.call
	call.pending = false
	if call.Op == Delegreturn {
		s.returned(call.delegation)
	}
	h := rpcrdma.Header{XID: call.xid, Version: rpcrdma.Version1, Credits: s.n.granted(), Type: rpcrdma.TypeMsg}
	switch {
	case call.Op == Read && s.n.ReadRead && !call.delayed:
		for _, seg := range call.segments {
			h.Reads = append(h.Reads, rpcrdma.ReadSegment{Segment: seg})
		}
	case call.Op == Read:
		var used rpcrdma.WriteChunk
		for _, seg := range call.segments {
			if call.delayed {
				seg.Length = 0
			} else {
				j.e.add(&request{
					kind: writeRequest, length: int(seg.Length), handle: seg.Handle, offset: seg.Offset, call: call, role: roleWrite,
				})
			}
			used = append(used, seg)
		}
		h.Writes = []rpcrdma.WriteChunk{used}
	}
	body := s.n.replyMessage(call)
	for i := range h.Reads {
		h.Reads[i].Position = uint32(len(body))
	}
	data := append(h.Append(nil), body...)
	j.e.add(&request{kind: sendRequest, data: data, call: call, reply: true, role: roleReply})
}

// service is for how long the server works on a call.
func (n *network) service(call *Call) int64 {
	mean := operations[call.Op].service + int64(call.Size)/10 // 10 GB/s
	d := n.around(mean, cmp.Or(n.Spread, 0.25), "service", uint64(call.Index))
	if t := n.ServerTime; t != nil && (t.Op == Any || t.Op == call.Op) && (t.Share == 0 || n.chance(t.Share, "slow", uint64(call.Index))) {
		d += n.around(t.Extra, cmp.Or(t.Spread, 0.3), "server time", uint64(call.Index))
	}
	if o := n.Neighbour; o != nil && call.client.base == neighbourCalls {
		d += n.around(o.Extra, 0.3, "neighbour", uint64(call.Index))
	}
	return d
}
