package kernel

import "slices"

// maxGroup is how many records or transactions of one XID are distinguished. More of them are left alone: an
// XID is used again after 2^32 calls.
const maxGroup = 64

// pairing is the state of the join at the end.
type pairing struct {
	*Join
	clocks map[clockKey]*Clock
	// ambiguous counts records whose XID came too often.
	ambiguous int
	// work counts the calls that were looked at to find those of mounts.
	work int
}

// pair finds the transaction of each record. First come XIDs that there is one record and one transaction of:
// they tell how the clocks differ. With that the others are distinguished by time.
func (j *Join) pair() *pairing {
	p := &pairing{Join: j, clocks: make(map[clockKey]*Clock)}
	for i := range j.calls {
		c := &j.calls[i]
		c.wire, c.wires = -1, 0
		if c.older >= 0 || j.callAt[c.xid] != int32(i) {
			continue
		}
		if w, n := p.only(c.xid, func(w *wire) bool { return p.sameCall(c, w) }); n == 1 {
			p.takeCall(int32(i), w)
		}
	}
	for i := range j.requests {
		q := &j.requests[i]
		q.wire, q.wires = -1, 0
		if q.older >= 0 || j.reqAt[q.xid] != int32(i) {
			continue
		}
		if w, n := p.only(q.xid, func(w *wire) bool { return p.sameRequest(q, w) }); n == 1 {
			p.takeRequest(int32(i), w)
		}
	}
	p.readClocks()
	for i := range j.calls {
		if x := j.calls[i].xid; j.callAt[x] == int32(i) && j.calls[i].wire < 0 {
			p.callsOf(x)
		}
	}
	for i := range j.requests {
		if x := j.requests[i].xid; j.reqAt[x] == int32(i) && j.requests[i].wire < 0 {
			p.requestsOf(x)
		}
	}
	return p
}

// only returns the transaction with an XID for which ok holds, and how many
// there are.
func (p *pairing) only(x uint32, ok func(*wire) bool) (w int32, n int) {
	w = -1
	i, has := p.wireAt[x]
	for steps := 0; has && i >= 0 && steps < maxGroup; steps++ {
		if ok(&p.wires[i]) {
			w = i
			n++
		}
		i = p.wires[i].older
	}
	return w, n
}

// sameCall reports whether a transaction can be what a client's trace recorded.
func (p *pairing) sameCall(c *call, w *wire) bool {
	if own := p.own[c.source]; w.overRDMA && len(own) > 0 && !own[w.client] {
		return false
	}
	return p.sameService(c.op, w.op)
}

func (p *pairing) sameRequest(q *request, w *wire) bool {
	return (q.client == 0 || q.client == w.client) && p.sameService(q.op, w.op)
}

// sameService compares programs and versions, as far as they are known.
func (p *pairing) sameService(a, b uint16) bool {
	if a == 0 || b == 0 {
		return true
	}
	x, y := p.names.value(a), p.names.value(b)
	if x.program == "" || y.program == "" {
		return true
	}
	same := x.program == y.program || x.program == "rpcbind" && y.program == "portmap"
	return same && x.version == y.version
}

// takeCall assigns a transaction to a record. If there are several, the kernel's round trip refers to the
// last one with a reply: it counts from the last transmission.
func (p *pairing) takeCall(c, w int32) {
	r := &p.calls[c]
	p.wires[w].call = c
	r.wires++
	if r.wire < 0 || p.wires[w].whole && p.wires[w].last >= p.wires[r.wire].last {
		r.wire = w
	}
}

func (p *pairing) takeRequest(q, w int32) {
	r := &p.requests[q]
	r.wires++
	r.wire = w
}

// chain collects a list that leads from the newest to the oldest, oldest
// first; nil if it is too long.
func chain(newest int32, older func(int32) int32) []int32 {
	var list []int32
	for i := newest; i >= 0; i = older(i) {
		if len(list) >= maxGroup {
			return nil
		}
		list = append(list, i)
	}
	slices.Reverse(list)
	return list
}

func (p *pairing) wiresOf(x uint32) []int32 {
	newest, ok := p.wireAt[x]
	if !ok {
		return nil
	}
	return chain(newest, func(i int32) int32 { return p.wires[i].older })
}

// callsOf pairs the records and the transactions of one XID. A transaction
// goes to the record whose time it fits best, or without a clock to the
// records in turn.
func (p *pairing) callsOf(x uint32) {
	records := chain(p.callAt[x], func(i int32) int32 { return p.calls[i].older })
	wires := p.wiresOf(x)
	if records == nil || wires == nil {
		if _, ok := p.wireAt[x]; ok {
			p.ambiguous++
		}
		return
	}
	turn := 0
	for _, w := range wires {
		best, distance := int32(-1), int64(0)
		for n, r := range records {
			c := &p.calls[r]
			if !p.sameCall(c, &p.wires[w]) {
				continue
			}
			d := int64(0)
			if k := p.clocks[clockKey{c.source, sideClient}]; k != nil && k.Known && c.done {
				d = outside(p.wires[w].first, k.capture(c.end-c.execute), k.capture(c.end))
			} else if n < turn {
				d = 1 << 61 // it has one
			} else {
				d = int64(n)
			}
			if best < 0 || d < distance {
				best, distance, turn = r, d, max(turn, n)
			}
		}
		if best >= 0 {
			p.takeCall(best, w)
			if len(records) > 1 {
				turn++
			}
		}
	}
}

// outside is how far a time lies outside of an interval.
func outside(t, from, to int64) int64 { return max(from-t, t-to, 0) }

func (p *pairing) requestsOf(x uint32) {
	records := chain(p.reqAt[x], func(i int32) int32 { return p.requests[i].older })
	wires := p.wiresOf(x)
	if records == nil || wires == nil {
		if _, ok := p.wireAt[x]; ok {
			p.ambiguous++
		}
		return
	}
	// Each message that the server received is one transaction. Both lists are
	// in the order of time, and either may lack some.
	for _, w := range wires {
		best, distance := int32(-1), int64(0)
		for _, r := range records {
			q := &p.requests[r]
			if q.wire >= 0 || !p.sameRequest(q, &p.wires[w]) {
				continue
			}
			d := int64(0)
			if k := p.clocks[clockKey{q.source, sideServer}]; k != nil && k.Known {
				start := q.decode
				if start == 0 {
					start = q.end - q.execute
				}
				d = outside(p.wires[w].callLast, k.capture(start), k.capture(start))
			}
			if best < 0 || d < distance {
				best, distance = r, d
			}
		}
		if best >= 0 {
			p.takeRequest(best, w)
		}
	}
}
