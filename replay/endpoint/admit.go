package endpoint

import (
	"math"
	"time"
)

// expected returns for how many bytes of a reply the peer has made room in chunks.
func (x *exchange) expected() int64 {
	n := x.hdr.Reply.Length()
	for _, w := range x.hdr.Writes {
		n = min(n, math.MaxUint32) + min(w.Length(), math.MaxUint32)
	}
	return int64(min(n, uint64(x.s.o.MaxMessage)))
}

// fits reports whether a call may begin. If it may not, it waits: for the end of
// another call of the connection, or else for a timer. mu is held.
func (s *server) fits(x *exchange) bool {
	if s.holding > 0 {
		return x.l.acct.Room() && (s.pulling == 0 || s.pulling+x.size <= s.o.MaxPulled)
	}
	if x.l.acct.Admit(x.charge, s.waited) {
		s.waited = 0
		return true
	}
	const step = 20 * time.Millisecond
	if s.waited += step; s.retry == nil {
		s.retry = time.AfterFunc(step, s.resume)
	} else {
		s.retry.Reset(step)
	}
	return false
}

// take counts a call that begins. mu is held.
func (s *server) take(x *exchange) {
	s.pulling += x.size
	s.holding++
	x.counted = true
	x.l.acct.Add(x.charge)
}

// recharge sets what the account is charged for the exchange to n bytes.
func (x *exchange) recharge(n int64) {
	if !x.counted {
		x.s.mu.Lock()
		x.s.holding++
		x.s.mu.Unlock()
		x.counted, x.charge, x.size = true, 0, 0
	}
	x.l.acct.Add(n - x.charge)
	x.charge = n
}

// freed takes a call out of the account and lets calls that wait begin.
func (s *server) freed(n int) {
	s.mu.Lock()
	s.pulling -= n
	s.holding--
	s.mu.Unlock()
	s.resume()
}

// resume begins the calls that there is room for.
func (s *server) resume() {
	s.mu.Lock()
	var next []*exchange
	for s.waiting.Len() > 0 && !s.dead {
		x := *s.waiting.Front()
		if !s.fits(x) {
			break
		}
		s.take(x)
		s.waiting.Pop()
		next = append(next, x)
	}
	s.mu.Unlock()
	for _, x := range next {
		x.begin()
	}
}

// owes records that the exchange waits for the peer.
func (x *exchange) owes() {
	x.owing = true
	x.l.owing.Add(1)
}

// paid records that the exchange does not wait any more.
func (x *exchange) paid() {
	if x.owing {
		x.owing = false
		x.l.owing.Add(-1)
	}
}
