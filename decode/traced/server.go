package traced

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// thread is one of nfsd.
type thread struct {
	wakeup uint64 // microseconds
	woken  bool
	// The header at hand.
	reads  []rpcrdma.ReadSegment
	writes []rpcrdma.WriteChunk
	// The call that is executed, and the reply while segments may be reported that were written.
	tag         rdma.Tag
	xid         uint32
	first, last rdma.Ref
	written     []rpcrdma.Segment
	replies     bool
	// The begin of an execution whose header nobody has told, and the operations that the thread has executed since; executed says that none
	// is missing.
	begun    begun
	steps    []transaction.Executed
	executed bool
}

// begun is the begin of an execution.
type begun struct {
	xid    uint32
	at     rdma.Ref
	client netip.Addr
	procedure
}

// request is a call whose header is decoded and that is not executed yet.
type request struct {
	xid, queue, thread uint32
	at                 rdma.Ref
	wakeup             uint64
	woken, taken       bool
	header             []byte
	full               uint32
	older              *request // with the same XID
}

func (t *Tracker) thread(e *ftrace.Event) *thread {
	x := t.threads[e.Thread]
	if x == nil {
		if len(t.threads) >= maxThreads {
			for len(t.replies) > 0 {
				t.replied(t.replies[0])
			}
			clear(t.threads)
		}
		x = new(thread)
		t.threads[e.Thread] = x
	}
	return x
}

// receives takes what precedes a request.
func (t *Tracker) receives(e *ftrace.Event) {
	x := t.thread(e)
	if e.Kind == ftrace.Dequeued {
		x.wakeup, x.woken = e.Wakeup, e.Has(ftrace.Waited)
		return
	}
	if !e.Has(ftrace.Memory) || len(x.reads)+count(x.writes) >= maxSegments {
		return
	}
	s := rpcrdma.Segment{Handle: e.Handle, Length: e.Length, Offset: e.Offset}
	if e.Kind == ftrace.ReadSegment {
		x.reads = append(x.reads, rpcrdma.ReadSegment{Position: e.Position, Segment: s})
		return
	}
	if e.Segment == 0 || len(x.writes) == 0 {
		x.writes = append(x.writes, nil)
	}
	last := &x.writes[len(x.writes)-1]
	*last = append(*last, s)
}

// request takes a decoded header: of a call, or of the reply to a callback.
func (t *Tracker) request(e *ftrace.Event, at rdma.Ref) {
	x := t.thread(e)
	reads, writes := x.reads, x.writes
	x.reads, x.writes = nil, nil
	if !e.Has(ftrace.XID | ftrace.Completion | ftrace.Header) {
		return
	}
	h := &t.header
	*h = rpcrdma.Header{XID: e.XID, Version: rpcrdma.Version1, Credits: e.Credits, Reads: reads, Writes: writes}
	for h.Type = rpcrdma.TypeMsg; h.Type < rpcrdma.TypeError && h.Type.String() != string(e.Procedure); h.Type++ {
	}
	// The events do not tell a Write chunk from the Reply chunk, which comes last. In the header it is 4 bytes shorter.
	if n := len(writes); n > 0 && uint32(h.Size()) == e.Header+4 {
		h.Writes, h.Reply, h.HasReply = writes[:n-1], writes[n-1], true
	}
	r := &request{
		xid: e.XID, queue: e.Queue, thread: e.Thread, at: at, wakeup: x.wakeup, woken: x.woken,
		header: append([]byte(nil), t.encode(e.Header)...), full: e.Header, older: t.requests[e.XID],
	}
	x.woken = false
	if r.older != nil {
		r.older.older = nil // two clients may use the same XID at once, hardly three
	}
	t.requests[e.XID] = r
	t.waiting = append(t.waiting, r)
	for len(t.waiting) > 0 && (t.waiting[0].taken || len(t.waiting) > maxRequests) {
		t.forget(t.waiting[0])
		t.waiting[0] = nil
		t.waiting = t.waiting[1:]
	}
}

// forget takes a request out of those by XID.
func (t *Tracker) forget(r *request) {
	switch newest := t.requests[r.xid]; {
	case newest == r && r.older == nil:
		delete(t.requests, r.xid)
	case newest == r:
		t.requests[r.xid] = r.older
	case newest != nil && newest.older == r:
		newest.older = nil
	}
}

// take finds the request that a thread executes: as a rule it has decoded the header itself.
func (t *Tracker) take(e *ftrace.Event) *request {
	r := t.requests[e.XID]
	if r == nil {
		return nil
	}
	if o := r.older; o != nil && r.thread != e.Thread {
		k := connKey{client: e.Peer.Addr(), queue: r.queue, served: true}
		if o.thread == e.Thread || t.conns[k] == nil {
			r = o
		}
	}
	t.forget(r)
	r.taken = true
	return r
}

// process takes the begin of an execution.
func (t *Tracker) process(e *ftrace.Event, at rdma.Ref) *rdma.Connection {
	if !e.Has(ftrace.XID) {
		return nil
	}
	x := t.thread(e)
	x.steps, x.executed = x.steps[:0], false
	tx := t.begin(x, e)
	if tx == nil { // over TCP, or only calls are told
		x.begun = begun{e.XID, at, e.Peer.Addr(), t.called(e)}
		return nil
	}
	tx.Kernel.Dispatch = max(rdma.Between(tx.Call.First.Time, at.Time), 0)
	t.call(tx, e)
	tx.Kernel.Operation = ""
	return tx.Connection
}

// begin begins the transaction of a request that a thread has taken; nil if there is none.
func (t *Tracker) begin(x *thread, e *ftrace.Event) *transaction.Transaction {
	x.tag = rdma.Tag{}
	r := t.take(e)
	if r == nil {
		return nil
	}
	c := t.connection(connKey{client: e.Peer.Addr(), queue: r.queue, served: true}, r.at)
	tx, tag := t.tx.Begin(c, client, client, e.XID, r.at)
	x.tag, x.xid = tag, e.XID
	tx.Kernel.Server, tx.Kernel.CallCredits = true, true
	if r.woken {
		tx.Kernel.Wakeup = micros(r.wakeup)
	}
	t.tx.SetHeader(tx, &tx.Call, r.header, int(r.full))
	return tx
}

// serves takes the end of an execution, and what was written to a segment behind it.
func (t *Tracker) serves(e *ftrace.Event, at rdma.Ref) *rdma.Connection {
	x := t.thread(e)
	tx := t.tx.Recorded(x.tag)
	if e.Kind == ftrace.Served && e.Has(ftrace.XID) && (tx == nil || e.XID != x.xid) {
		if tx = t.begin(x, e); tx == nil { // else the security layer has answered it: nobody says what it calls
			tx = t.served(x, e, at)
		}
	}
	if tx == nil {
		return nil
	}
	if e.Kind == ftrace.Returned {
		if x.replies && e.Has(ftrace.Memory) && len(x.written) < maxSegments {
			x.written, x.last = append(x.written, rpcrdma.Segment{Handle: e.Handle, Length: e.Length, Offset: e.Offset}), at
		}
		return tx.Connection
	}
	if !e.Has(ftrace.XID | ftrace.Execution) {
		return nil
	}
	tx.Kernel.Execution = micros(e.Executed)
	if x.executed {
		t.tx.SetExecuted(tx, x.steps)
	}
	x.steps, x.executed = x.steps[:0], false
	if c := tx.Connection; !c.Ends[server].Addr.IsValid() {
		c.Ends[server].Addr = e.Local.Addr()
	}
	x.first, x.last, x.written, x.replies = at, at, x.written[:0], true
	t.replies = append(t.replies, x)
	return tx.Connection
}

// served begins the transaction of a call whose header no event has shown, if it came over RDMA. There, nfsd sets the client's port to 0, so that
// a client is recognised when it connects again.
func (t *Tracker) served(x *thread, e *ftrace.Event, at rdma.Ref) *transaction.Transaction {
	b := x.begun
	x.begun = begun{}
	if !e.Has(ftrace.Execution) || !e.Peer.IsValid() || e.Peer.Port() != 0 || !e.Local.IsValid() {
		return nil
	}
	known := b.at.Seen() && b.xid == e.XID && b.client == e.Peer.Addr()
	if !known {
		b = begun{at: before(at, e.Executed), procedure: t.called(e)}
	}
	tx, tag := t.tx.Begin(t.connection(connKey{client: e.Peer.Addr(), server: e.Local.Addr(), served: true}, b.at), client, client, e.XID, b.at)
	x.tag, x.xid = tag, e.XID
	tx.Kernel.Server = true
	b.set(tx)
	if known {
		tx.Kernel.Operation = ""
	}
	return tx
}

// executes takes an operation of a COMPOUND. The operations are told in their order, by the thread that executes them.
func (t *Tracker) executes(e *ftrace.Event) *rdma.Connection {
	x := t.thread(e)
	number, ok := t.operation(e.Procedure)
	if x.executed = false; !ok || !e.Has(ftrace.Outcome|ftrace.Place) || len(x.steps) != int(e.Index)-1 || len(x.steps) >= maxSegments {
		x.steps = x.steps[:0] // an event is missing: none is known
	} else {
		x.steps = append(x.steps, transaction.Executed{Operation: number, Status: e.Status})
		x.executed = e.Index == e.Count || e.Status != 0
	}
	if tx := t.tx.Recorded(x.tag); tx != nil {
		return tx.Connection
	}
	return nil
}

// operation is the number of an operation of NFSv4 that the kernel names: OP_READ.
func (t *Tracker) operation(name []byte) (uint32, bool) {
	if len(t.numbered) == 0 {
		for n := range uint32(nfs4.OP_REMOVEXATTR) + 1 {
			t.numbered["OP_"+nfs4.OpName(n)] = n
		}
	}
	n, ok := t.numbered[string(name)]
	return n, ok
}

// patience is how long a reply waits for what was written to its segments, in nanoseconds, if the thread has nothing else to do.
const patience = 10e6

// settle ends the transactions whose replies are complete: their thread does something else, or has done nothing for some time.
func (t *Tracker) settle(e *ftrace.Event, at rdma.Ref) {
	if len(t.replies) == 0 {
		return
	}
	if x := t.threads[e.Thread]; x != nil && x.replies && e.Kind != ftrace.Returned && e.Kind != ftrace.Other {
		t.replied(x)
	}
	for len(t.replies) > 0 && at.Time-t.replies[0].last.Time > patience {
		t.replied(t.replies[0])
	}
}

// replied ends the transaction that a thread has executed.
func (t *Tracker) replied(x *thread) {
	for i, y := range t.replies {
		if y == x {
			t.replies = append(t.replies[:i], t.replies[i+1:]...)
			break
		}
	}
	x.replies = false
	tx := t.tx.Recorded(x.tag)
	x.tag = rdma.Tag{}
	if tx == nil {
		return
	}
	t.setReply(tx, x)
	t.tx.Reply(tx, x.first, x.last)
	t.tx.End(tx)
}

// setReply makes the header of a reply: it has the chunks of the call, with the lengths that were written. The type follows: a
// server of Linux uses the Reply chunk if there is one.
func (t *Tracker) setReply(tx *transaction.Transaction, x *thread) {
	call, h := &tx.Call.Header, &t.header
	if !tx.Call.Transport || call.Cut {
		return
	}
	*h = rpcrdma.Header{XID: tx.XID, Version: rpcrdma.Version1, Type: rpcrdma.TypeMsg, HasReply: call.HasReply}
	if call.HasReply {
		h.Type = rpcrdma.TypeNoMsg
	}
	rest, all := x.written, true
	take := func(n int) (c rpcrdma.WriteChunk) {
		if all = all && n <= len(rest); all {
			c, rest = rest[:n:n], rest[n:]
		}
		return c
	}
	for _, c := range call.Writes {
		h.Writes = append(h.Writes, take(len(c)))
	}
	if call.HasReply {
		h.Reply = take(len(call.Reply))
	}
	t.bytes = h.Append(t.bytes[:0])
	header := t.bytes
	if !all || len(rest) > 0 {
		header = header[:fixedLength]
	}
	tx.Kernel.ReplyType, tx.Kernel.Written = true, all && len(rest) == 0
	t.tx.SetHeader(tx, &tx.Reply, header, len(t.bytes))
}

func count(chunks []rpcrdma.WriteChunk) (n int) {
	for _, c := range chunks {
		n += len(c)
	}
	return n
}
