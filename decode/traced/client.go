package traced

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// taskKey is a task of the client while it lasts: numbers of tasks are used again.
type taskKey struct{ task, client uint32 }

type callKey struct {
	taskKey
	xid uint32
}

// task is what is known of a call before its header is complete.
type task struct {
	asked, given rdma.Ref // first and last time that it looked for a credit
	registered   []registered
}

// registered is a segment of memory.
type registered struct {
	kind     ftrace.Kind
	position uint32
	at       rdma.Ref
	rpcrdma.Segment
}

// lists puts the segments into the lists of a header. A client of Linux offers one Write chunk at most.
func lists(h *rpcrdma.Header, all []registered) {
	h.Reads, h.Writes, h.Reply, h.HasReply = nil, nil, nil, false
	for i := range all {
		switch s := &all[i]; s.kind {
		case ftrace.ChunkRead:
			h.Reads = append(h.Reads, rpcrdma.ReadSegment{Position: s.position, Segment: s.Segment})
		case ftrace.ChunkWrite:
			if h.Writes == nil {
				h.Writes = append(h.Writes, nil)
			}
			h.Writes[0] = append(h.Writes[0], s.Segment)
		case ftrace.ChunkReply:
			h.Reply, h.HasReply = append(h.Reply, s.Segment), true
		}
	}
}

func (t *Tracker) task(e *ftrace.Event) *task {
	k := taskKey{e.Task, e.Client}
	x := t.tasks[k]
	if x == nil {
		if len(t.tasks) >= maxTasks {
			clear(t.tasks)
		}
		x = new(task)
		t.tasks[k] = x
	}
	return x
}

// prepares takes what precedes a call, or its reply.
func (t *Tracker) prepares(e *ftrace.Event, at rdma.Ref) {
	switch e.Kind {
	case ftrace.Threshold:
		t.connects(e)
		return
	case ftrace.Found:
		if e.Has(ftrace.XID) && e.Peer.IsValid() {
			if len(t.found) >= maxCalls {
				clear(t.found)
			}
			t.found[e.XID] = e.Peer.Addr()
		}
		return
	}
	if !e.Has(ftrace.Task) {
		return
	}
	x := t.task(e)
	if e.Kind == ftrace.Granted {
		if x.given = at; !x.asked.Seen() {
			x.asked = at
		}
		return
	}
	if e.Has(ftrace.Memory) && len(x.registered) < maxSegments {
		s := rpcrdma.Segment{Handle: e.Handle, Length: e.Length, Offset: e.Offset}
		x.registered = append(x.registered, registered{e.Kind, e.Position, at, s})
	}
}

// learns takes events that begin no call: transports, counters, errors of replies.
func (t *Tracker) learns(e *ftrace.Event, at rdma.Ref) {
	switch {
	case e.Kind == ftrace.Counter:
		if t.Counter != nil {
			t.Counter(at, string(e.Program), string(e.Procedure), e.Grown)
		}
	case e.Kind == ftrace.Transport:
		if e.Has(ftrace.Connected) && (len(t.links) < maxConnections || t.links[e.Transport].Program != nil) {
			t.links[e.Transport] = ftrace.Event{Program: bytes.Clone(e.Program), Peer: e.Peer, Local: e.Local}
			if string(e.Program) == rdmaTransport {
				t.connects(e)
			}
		}
	case e.Has(ftrace.XID | ftrace.Task | ftrace.Outcome):
		k := callKey{taskKey{e.Task, e.Client}, e.XID}
		if tx := t.tx.Recorded(t.calls[k]); tx != nil {
			tx.Kernel.Outcome, tx.Kernel.Status = true, e.Status
			return
		}
		if len(t.failures) >= maxTasks {
			clear(t.failures)
		}
		t.failures[k] = e.Status
	}
}

// The kernel's names of transports of RPC over RDMA, and of the program of a server's callbacks.
const rdmaTransport, callbackProgram = "rdma", "nfs4_cb"

// ended begins the transaction of a call of which only the end was recorded, if its transport is known to be RDMA. The kernel takes the times
// just before it tells of them. It gives the number of a transport that has ended to the next one, so that this may be another by now: other
// programs than these go over TCP only, and the reply of a call over RDMA is told after it was found.
func (t *Tracker) ended(e *ftrace.Event, at rdma.Ref) *transaction.Transaction {
	link, ok := t.links[e.Transport]
	_, foundOnly := t.found[e.XID]
	delete(t.found, e.XID)
	program := string(e.Program)
	if !e.Has(ftrace.XID|ftrace.Task|ftrace.Times|ftrace.Connected) || !ok || string(link.Program) != rdmaTransport ||
		program != "nfs" && program != "nfsacl" && program != callbackProgram {
		return nil
	}
	sent := before(at, e.Execute-min(e.Execute, e.Backlog))
	var c *rdma.Connection
	from := client
	switch r := t.requests[e.XID]; {
	case program != callbackProgram && foundOnly:
		return nil
	case program != callbackProgram:
		c = t.to(link.Peer.Addr(), sent)
	case r == nil:
		c, from = t.connection(connKey{client: link.Peer.Addr(), server: link.Local.Addr(), served: true}, sent), server
	default: // the reply to the callback
		c, from = t.connection(connKey{client: link.Peer.Addr(), queue: r.queue, served: true}, sent), server
		t.forget(r)
		r.taken = true
	}
	if from == server && !c.Ends[server].Addr.IsValid() {
		c.Ends[server].Addr = link.Local.Addr()
	}
	tx, tag := t.tx.Begin(c, client, from, e.XID, sent)
	if e.RoundTrip > 0 {
		came := sent
		came.Time = min(sent.Time+int64(micros(e.RoundTrip)), at.Time)
		t.tx.Reply(tx, came, came)
	}
	return t.tx.Recorded(tag)
}

// before is an earlier time.
func before(at rdma.Ref, us uint64) rdma.Ref {
	at.Time -= int64(micros(us))
	return at
}

// connects remembers the addresses of a connection that was set up.
func (t *Tracker) connects(e *ftrace.Event) {
	if !e.Local.IsValid() || !e.Peer.IsValid() {
		return
	}
	for i := range t.peers {
		if p := &t.peers[i]; p.Local.Addr() == e.Local.Addr() && p.Peer.Addr() == e.Peer.Addr() {
			return
		}
	}
	if len(t.peers) < maxConnections {
		t.peers = append(t.peers, ftrace.Event{Local: e.Local, Peer: e.Peer})
	}
}

// to is the connection to a server; if that is not valid, to the only one that there is.
func (t *Tracker) to(peer netip.Addr, at rdma.Ref) *rdma.Connection {
	k := connKey{server: peer}
	for i := range t.peers {
		p := &t.peers[i]
		switch {
		case peer.IsValid() && p.Peer.Addr() != peer:
			continue
		case k.client.IsValid() && k.client != p.Local.Addr(), !peer.IsValid() && k.server.IsValid() && k.server != p.Peer.Addr():
			return t.connection(connKey{server: peer}, at) // it may be this one or that
		}
		k.client, k.server = p.Local.Addr(), p.Peer.Addr()
	}
	return t.connection(k, at)
}

// marshal takes a call: its header is complete.
func (t *Tracker) marshal(e *ftrace.Event, at rdma.Ref) *rdma.Connection {
	if !e.Has(ftrace.XID | ftrace.Task | ftrace.Header) {
		return nil
	}
	k := callKey{taskKey{e.Task, e.Client}, e.XID}
	tx := t.tx.Recorded(t.calls[k])
	if tx == nil {
		var tag rdma.Tag
		if tx, tag = t.tx.Begin(t.to(t.servers[e.Client], at), client, client, e.XID, at); len(t.calls) >= maxCalls {
			clear(t.calls)
		}
		t.calls[k] = tag
	} else if tx.Kernel.Transmissions > 0 {
		t.tx.Note(tx, transaction.Note{Kind: transaction.CallRepeated})
	}
	x := t.tasks[k.taskKey]
	if x == nil {
		x = new(task)
	}
	delete(t.tasks, k.taskKey)
	r := tx.Kernel
	r.Transmissions++
	if len(x.registered) > 0 {
		r.Registration = max(rdma.Between(x.registered[0].at.Time, at.Time), 0)
	}
	if x.asked.Seen() {
		r.CreditWait = max(rdma.Between(x.asked.Time, x.given.Time), 0)
	}
	t.header = rpcrdma.Header{XID: e.XID, Version: rpcrdma.Version1, Type: rpcrdma.TypeMsg}
	if string(e.ReadList) == "*read list" {
		t.header.Type = rpcrdma.TypeNoMsg
	}
	// A client that lacks memory regions begins anew, and registers the first segments again.
	all := x.registered
	for lists(&t.header, all); len(all) > 0 && uint32(t.header.Size()) > e.Header; lists(&t.header, all) {
		all = all[1:]
	}
	t.tx.SetHeader(tx, &tx.Call, t.encode(e.Header), int(e.Header))
	if e.Has(ftrace.Message) {
		tx.Call.Bytes, r.CallBytes = uint64(e.Head)+uint64(e.Pages)+uint64(e.Tail), true
	}
	return tx.Connection
}

// reply takes a reply.
func (t *Tracker) reply(e *ftrace.Event, at rdma.Ref) *rdma.Connection {
	if !e.Has(ftrace.XID | ftrace.Task) {
		return nil
	}
	if peer, ok := t.found[e.XID]; ok {
		delete(t.found, e.XID)
		if len(t.servers) >= maxTasks {
			clear(t.servers)
		}
		t.servers[e.Client] = peer
	}
	tx := t.tx.Recorded(t.calls[callKey{taskKey{e.Task, e.Client}, e.XID}])
	if tx == nil {
		return nil
	}
	t.header = rpcrdma.Header{XID: e.XID, Version: rpcrdma.Version1, Credits: e.Credits}
	t.bytes = t.header.Append(t.bytes[:0])
	// It has the credits, and nothing that follows them.
	t.tx.SetHeader(tx, &tx.Reply, t.bytes[:fixedLength-4], len(t.bytes))
	tx.Reply.Header.Credits = e.Credits
	tx.Kernel.ReplyCredits = e.Has(ftrace.Credits)
	t.tx.Reply(tx, at, at)
	return tx.Connection
}

// latency takes the end of a call.
func (t *Tracker) latency(e *ftrace.Event, at rdma.Ref) *rdma.Connection {
	k := callKey{taskKey{e.Task, e.Client}, e.XID}
	delete(t.tasks, k.taskKey)
	tag := t.calls[k]
	delete(t.calls, k)
	tx := t.tx.Recorded(tag)
	status, failed := t.failures[k]
	delete(t.failures, k)
	if tx == nil {
		if tx = t.ended(e, at); tx == nil {
			return nil // over TCP
		}
	}
	if !e.Has(ftrace.XID | ftrace.Task) {
		return nil
	}
	t.call(tx, e)
	r := tx.Kernel
	if failed {
		r.Outcome, r.Status = true, status
	}
	if e.Has(ftrace.Times) {
		r.Queued, r.Total = micros(e.Backlog), micros(e.Execute)
		if tx.Reply.Seen() {
			r.RoundTrip = micros(e.RoundTrip)
		}
	}
	c := tx.Connection
	t.tx.End(tx)
	return c
}

// callback takes a call of the server, or the client's reply to it.
func (t *Tracker) callback(e *ftrace.Event, at rdma.Ref) *rdma.Connection {
	if !e.Has(ftrace.XID) {
		return nil
	}
	if e.Kind == ftrace.CallbackCall {
		if len(t.callbacks) >= maxTasks {
			clear(t.callbacks)
		}
		tx, tag := t.tx.Begin(t.to(e.Peer.Addr(), at), client, server, e.XID, at)
		t.callbacks[e.XID] = tag
		return tx.Connection
	}
	tx := t.tx.Recorded(t.callbacks[e.XID])
	delete(t.callbacks, e.XID)
	if tx == nil {
		return nil
	}
	c := tx.Connection
	tx.Kernel.Dispatch = max(time.Duration(at.Time-tx.Call.First.Time), 0)
	t.tx.Reply(tx, at, at)
	t.tx.End(tx)
	return c
}
