package roce

// history has the latest requests of a flow, in the order of their PSNs.
type history struct {
	ring   []request // the last requests: see request
	prints []print   // of the last messages, in capture order: prints[pushed%len(prints)]
	pushed uint64    // messages
	head   uint64    // position after the newest
	acked  uint64    // position of the oldest that has not been acknowledged
	held   uint64    // position of the oldest that was kept when the ring grew
}

// earlier makes room before requests with later PSNs: all from there on move up, to pos.
func (h *history) earlier(pos uint64, start uint32) *request {
	r := h.request(pos)
	for pos > h.acked {
		before := h.request(pos - 1)
		if psnDiff(before.start, start) <= 0 {
			break
		}
		*r, r = *before, before
		pos--
	}
	return r
}

// request is the one at a position that the ring holds. Its length is a power of two: see grow.
func (h *history) request(pos uint64) *request { return &h.ring[pos&uint64(len(h.ring)-1)] }

// answered reports whether a request of the ring has been acknowledged.
func (h *history) answered(r *request) bool {
	return h.acked == h.head || psnDiff(r.start, h.request(h.acked).start) < 0
}

// oldest is the position of the oldest request that the ring still holds.
func (h *history) oldest() uint64 {
	if n := uint64(len(h.ring)); h.head > n {
		return max(h.head-n, h.held)
	}
	return h.held
}

// newest is the last request; there must be one.
func (h *history) newest() *request { return h.request(h.head - 1) }

// find returns the newest request that psn belongs to.
func (h *history) find(psn uint32) *request {
	for pos := h.head; pos > h.oldest(); pos-- {
		r := h.request(pos - 1)
		d := psnDiff(psn, r.start)
		if d >= 0 && (uint32(d) < r.count || r.count == 0) {
			return r
		}
	}
	return nil
}

// awaits reports whether psn is one of a request that has not been acknowledged.
func (h *history) awaits(psn uint32) bool {
	for pos := h.acked; pos < h.head; pos++ {
		r := h.request(pos)
		if d := psnDiff(psn, r.start); d >= 0 && uint32(d) < max(r.count, 1) {
			return true
		}
	}
	return false
}

// isNewest reports whether a PSN is one of the newest request.
func (h *history) isNewest(psn uint32) bool {
	r := h.find(psn)
	return r != nil && r == h.request(h.head-1)
}

// answers reports whether a response is one that a request of the flow asks for: the acknowledgement of its
// end, or the first response of a Read.
func (h *history) answers(p *Packet) bool {
	r := h.find(p.PSN)
	switch {
	case r == nil:
		return false
	case p.Opcode.IsReadResponse():
		return r.kind == readRequest && p.Opcode.Starts() && p.PSN == r.start
	case r.kind == readRequest:
		return false // Responses acknowledge it
	}
	return p.PSN == psnAdd(r.start, max(r.count, 1)-1)
}

// rings gives the histories of all flows room, within a limit.
type rings struct {
	limits   *Limits
	account  *account
	requests int // in all rings
}

// push makes room for a request in the ring, ordered by PSN. sum is its print.
func (x *rings) push(fl *flow, start, sum uint32) *request {
	pos := fl.head
	var r *request
	if n := uint64(len(fl.ring)); pos-fl.acked < n {
		r = &fl.ring[pos&(n-1)]
		if pos >= n && (n < 16 || r.unfinished()) {
			r = nil
		}
	}
	if r == nil {
		x.grow(fl)
		r = fl.request(pos)
	}
	fl.head++
	if pos > fl.acked && psnDiff(fl.request(pos-1).start, start) > 0 {
		r = fl.earlier(pos, start)
	}
	r.start, r.print = start, sum
	if n := uint64(len(fl.prints)); n > 0 {
		fl.prints[fl.pushed&(n-1)] = print{start, sum}
	}
	fl.pushed++
	return r
}

// grow doubles the ring, up to the limit, while it holds requests that are not acknowledged or answered; then
// the oldest is dropped.
func (x *rings) grow(fl *flow) {
	n := len(fl.ring)
	size := 4 * n // 4, 16, then in steps of two
	if n >= 16 {
		size = 2 * n
	}
	size = max(size, 4)
	if size > x.limits.Requests || n > 0 && (x.requests+size-n > maxRings || !x.account.fits((size-n)*requestSize)) {
		if fl.head-fl.acked >= uint64(n) {
			fl.acked = fl.head - uint64(n) + 1
		}
		return
	}
	x.requests += size - n
	x.account.add(fl.c, (size-n)*requestSize)
	ring := make([]request, size)
	from := fl.oldest()
	fl.held = from
	for pos := from; pos < fl.head; pos++ {
		ring[pos%uint64(size)] = *fl.request(pos)
	}
	fl.ring = ring
	x.growPrints(fl)
}

// growPrints makes room for more prints after the ring has grown. A ring of fewer than 16 slots has none: it holds every
// message itself. A sender may go back further than the ring reaches, because acknowledgements that the capture shows may
// not have reached it yet.
func (x *rings) growPrints(fl *flow) {
	size := min(len(fl.ring)*printsPerRequest, maxPrints)
	if len(fl.ring) < 16 || size == len(fl.prints) {
		return
	}
	more := (size - len(fl.prints)) * printSize
	if fl.prints != nil && !x.account.fits(more) {
		return
	}
	x.account.add(fl.c, more)
	prints := make([]print, size)
	kept := uint64(0)
	if fl.prints == nil {
		for pos := fl.oldest(); pos < fl.head; pos++ {
			r := fl.request(pos)
			prints[kept] = print{r.start, r.print}
			kept++
		}
	} else {
		n := uint64(len(fl.prints))
		for i := fl.pushed - min(fl.pushed, n); i < fl.pushed; i++ {
			prints[kept] = fl.prints[i&(n-1)]
			kept++
		}
	}
	fl.prints, fl.pushed = prints, kept
}

// release takes the room of a history back.
func (x *rings) release(fl *flow) {
	x.requests -= len(fl.ring)
	x.account.add(fl.c, -len(fl.ring)*requestSize-len(fl.prints)*printSize)
	fl.history = history{}
}
