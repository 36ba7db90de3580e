package fault

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport"
)

// Handler puts the faults in front of a program.
func (p *Plan) Handler(h transport.Handler) transport.Handler {
	if p == nil {
		return h
	}
	return &handler{p, h}
}

type handler struct {
	plan *Plan
	next transport.Handler
}

func (h *handler) ServeRPC(x transport.Exchange) {
	var xid uint32
	if s := x.Call().Stream; len(s) >= 4 {
		xid = binary.BigEndian.Uint32(s)
	}
	for _, s := range h.plan.next(xid, 0) {
		switch s.Action {
		case Drop:
			h.plan.count(Drop)
			x.Drop()
			return
		case Disconnect:
			h.plan.count(Disconnect)
			x.Disconnect() // the exchange is gone after Drop
			x.Drop()
			return
		case Delay:
			h.plan.count(Delay)
			x = &delayed{Exchange: x, by: s.Time}
		}
	}
	h.next.ServeRPC(x)
}

// delayed is an exchange whose reply is delayed.
type delayed struct {
	transport.Exchange
	by time.Duration
}

func (d *delayed) Reply(m *transport.Message) {
	time.AfterFunc(d.by, func() { d.Exchange.Reply(m) })
}

// Requester puts the faults behind a caller. op returns the operation of a plan that
// a call belongs to; it may be nil.
func (p *Plan) Requester(r transport.Requester, op func(*transport.Call) int) transport.Requester {
	if p == nil {
		return r
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // cannot fail (crypto/rand)
	q := &requester{Requester: r, plan: p, op: op}
	q.xid.Store(binary.BigEndian.Uint32(b[:]))
	return q
}

type requester struct {
	transport.Requester
	plan *Plan
	op   func(*transport.Call) int
	xid  atomic.Uint32
}

// disconnecter is a Requester that can drop its connection and connect again.
type disconnecter interface{ Disconnect() }

func (r *requester) Start(c *transport.Call) {
	op := 0
	if r.op != nil {
		op = r.op(c)
	}
	for c.XID == 0 {
		c.XID = r.xid.Add(1)
	}
	wait := time.Duration(0)
	cut := false
	for _, s := range r.plan.next(c.XID, op) {
		switch s.Action {
		case Delay:
			r.plan.count(Delay)
			wait += s.Time
		case Drop:
			r.plan.count(Drop)
			r.again(c, s.Time)
		case Disconnect:
			cut = true
		}
	}
	if wait > 0 {
		time.AfterFunc(wait, func() { r.start(c, cut) })
		return
	}
	r.start(c, cut)
}

func (r *requester) start(c *transport.Call, cut bool) {
	r.Requester.Start(c)
	if d, ok := r.Requester.(disconnecter); ok && cut {
		r.plan.count(Disconnect)
		d.Disconnect()
	}
}

// again discards the first reply and retransmits the call.
func (r *requester) again(c *transport.Call, after time.Duration) {
	done := c.Done
	c.Done = func(c *transport.Call) {
		c.Done = done
		if c.Err != nil {
			done(c)
			return
		}
		time.AfterFunc(max(after, time.Millisecond), func() { r.Requester.Start(c) })
	}
}
