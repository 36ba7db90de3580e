package endpoint

import (
	"time"
)

type heldCall struct {
	xid   uint32
	x     *exchange
	until time.Time
}

// hold keeps the memory of a reply until the Requester has read it. A peer that never
// sends RDMA_DONE can make us hold twice as many replies as it has credits.
func (s *server) hold(x *exchange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || s.held[x.hdr.XID] != nil || len(s.held) >= int(2*s.o.MaxCredits) {
		return false
	}
	if s.held == nil {
		s.held = make(map[uint32]*exchange)
	}
	s.held[x.hdr.XID] = x
	x.step(exchangeExpose)
	s.order.Push(heldCall{x.hdr.XID, x, time.Now().Add(s.o.DoneTimeout)})
	if s.order.Len() == 1 {
		l := x.l
		if s.timer == nil {
			s.timer = time.AfterFunc(s.o.DoneTimeout, func() { s.expire(l) })
		} else {
			s.timer.Reset(s.o.DoneTimeout)
		}
	}
	return true
}

// unhold takes an exchange out of those that are held.
func (s *server) unhold(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[x.hdr.XID] == x {
		delete(s.held, x.hdr.XID)
	}
}

// done handles RDMA_DONE.
func (s *server) done(xid uint32) {
	s.mu.Lock()
	x := s.held[xid]
	delete(s.held, xid)
	if x != nil && !x.settle() {
		x = nil
	}
	for s.order.Len() > 0 && s.held[s.order.Front().xid] != s.order.Front().x {
		s.order.Pop()
	}
	s.mu.Unlock()
	if x != nil {
		x.close()
	}
}

// settle records that the peer reads no more. It reports whether the caller has to
// close the memory; otherwise workDone does when the Send is complete.
func (x *exchange) settle() bool {
	to, ok := x.step(exchangeDone)
	return ok && to == exchangeClosing
}

// expire closes replies that were held for too long. A later Read fails and ends the
// connection (Callaghan 2003).
func (s *server) expire(l *link) {
	now := time.Now()
	var late []*exchange
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		return
	}
	l.ref()
	for s.order.Len() > 0 {
		h := s.order.Front()
		if s.held[h.xid] != h.x {
			s.order.Pop()
			continue
		}
		if h.until.After(now) {
			break
		}
		delete(s.held, h.xid)
		if h.x.settle() {
			late = append(late, h.x)
		}
		s.order.Pop()
	}
	if s.order.Len() > 0 && !s.dead {
		s.timer.Reset(time.Until(s.order.Front().until))
	}
	s.mu.Unlock()
	for _, x := range late {
		x.close()
	}
	l.unref()
}

// close closes the memory of a reply in state closing.
func (x *exchange) close() {
	l := x.l
	if wrs := l.closeRegions(&x.op); len(wrs) > 0 {
		if l.enqueue(work{wrs: wrs, owner: x}) {
			l.flush()
			return
		}
	}
	x.end()
}
