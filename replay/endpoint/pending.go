package endpoint

import (
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// pendingCall is the endpoint's part of a transport.Call.
type pendingCall struct {
	c    *caller
	call *transport.Call

	// caller.mu protects these.
	state  callState
	link   *link // whose credit it has
	seq    uint64
	due    time.Time
	xid    uint32
	giveUp error // it is to end with this as soon as possible
	sent   bool  // on some connection

	hdr    rpcrdma.Header
	op     opening
	writes int    // Write chunks offered for Results
	reply  *block // memory of the Reply chunk

	pulls  []verbs.WorkRequest
	sgl    [][]byte // memory that pulls name
	blocks []*block // memory for what is pulled
	used   []int    // bytes in each Write chunk
	items  []transport.Item
	rb     *recvBuf
	err    error
	moved  struct{ reads, writes int } // bytes

	do   bool // Do waits for it
	done chan struct{}
	keep []byte // the reply, for Do
}

var pendingCalls = sync.Pool{New: func() any { return &pendingCall{done: make(chan struct{}, 1)} }}

// reset prepares for a call.
func (pc *pendingCall) reset(c *caller, call *transport.Call) {
	call.Err, call.Reply, call.Times = nil, transport.Message{}, transport.Times{Queued: time.Now()}
	call.Private = pc
	timeout := call.Timeout
	if timeout <= 0 {
		timeout = c.o.Timeout
	}
	pc.c, pc.call, pc.state, pc.link, pc.giveUp, pc.err = c, call, callIdle, nil, nil, nil
	pc.sent = false
	pc.due = call.Times.Queued.Add(timeout)
}

// complete ends a call that holds nothing of a connection.
func (pc *pendingCall) complete(err error) {
	if pc.do {
		pc.tell(err)
		pc.done <- struct{}{}
		return
	}
	pc.tell(err)
	pc.free()
}

// tell gives the call back to its owner.
func (pc *pendingCall) tell(err error) {
	call := pc.call
	call.Err = err
	if err != nil {
		pc.c.ctr.errors.Add(1)
	} else {
		pc.c.ctr.replies.Add(1)
	}
	if call.Release != nil {
		call.Release()
	}
	if !pc.do {
		call.Private = nil
	}
	if call.Done != nil {
		call.Done(call)
	}
}

func (pc *pendingCall) free() {
	pc.call, pc.c, pc.link = nil, nil, nil
	clear(pc.items)
	pendingCalls.Put(pc)
}

// release gives back the blocks of a call. The peer has no access to them any
// more.
func (pc *pendingCall) release(l *link) {
	l.giveBounces(&pc.op)
	pc.op.reset()
	pc.reply = nil
	for i, b := range pc.blocks {
		l.mem.put(b)
		pc.blocks[i] = nil
	}
	pc.blocks = pc.blocks[:0]
}

// keepReply moves the reply to memory of the call, where it stays until the
// call is used again.
func (pc *pendingCall) keepReply() {
	m := &pc.call.Reply
	n := len(m.Stream)
	results := pc.call.Results
	moves := func(i int) bool { return i >= len(results) || base(m.Items[i].Data) != base(results[i]) }
	for i := range m.Items {
		if moves(i) {
			n += len(m.Items[i].Data)
		}
	}
	if cap(pc.keep) < n {
		pc.keep = make([]byte, 0, n)
	}
	b := append(pc.keep[:0], m.Stream...)
	m.Stream = b[:len(b):len(b)]
	for i := range m.Items {
		if moves(i) {
			at := len(b)
			b = append(b, m.Items[i].Data...)
			m.Items[i].Data = b[at:len(b):len(b)]
		}
	}
	pc.keep = b
}

func (pc *pendingCall) trace(l *link, err error) {
	if l.o.Trace == nil {
		return
	}
	t := &pc.call.Times
	x := Trace{
		Peer: l.peer, XID: pc.xid, Backward: pc.c.backward, Queued: t.Queued, Sent: t.Sent, Replied: t.Replied, Done: time.Now(),
		ReadBytes: pc.moved.reads, WriteBytes: pc.moved.writes, Segments: len(pc.op.segments), Err: err,
	}
	l.o.Trace(&x)
}
