package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// Merged implements rdma.Handler. Transactions that had ended before are put
// right when they are emitted.
func (t *Tracker) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	k, old := of(into), of(from)
	k.calls.add(old.calls)
	t.protocol.merge(k, old)
	if f := forwardSide(from); f != unknownSide && forwardSide(into) == unknownSide {
		if f != was {
			setForwardSide(into, side.Other())
		} else {
			setForwardSide(into, side)
		}
	}
	if l := old.likely; l != 0 && k.likely == 0 {
		k.likely = uint8(side) + 1
		if rdma.Side(l-1) != was {
			k.likely = uint8(side.Other()) + 1
		}
	}
	for s := range rdma.Side(2) {
		to := side
		if s != was {
			to = side.Other()
		}
		k.delivered[to].merge(old.delivered[s])
		if h := old.halves[s]; h != nil {
			old.halves[s] = nil
			t.join(into, to, h)
		}
		if h := k.halves[to]; h != nil {
			for _, tx := range h.open.all() {
				tx.ackMissed = true // of two flows, each alone, none shows what it acknowledges
			}
			t.halves.countTables(h)
		}
	}
}

// join makes h part of side to of a connection.
func (t *Tracker) join(into *rdma.Connection, to rdma.Side, h *half) {
	place := h.place != 0
	t.sent.left(h)
	for _, tx := range h.open.all() {
		tx.Connection, tx.From = into, to
		if f := forwardSide(into); f != unknownSide {
			tx.Backward = f != to
		}
	}
	k := halfOf(into, to)
	if k == nil {
		h.c, h.side = into, to
		of(into).halves[to] = h
		if place {
			t.sent.opened(h)
		}
		return
	}
	t.halves.forget(h)
	if place {
		t.sent.opened(k)
	}
	k.calls += h.calls
	k.credits = credits{waiting: k.credits.waiting + h.credits.waiting}
	for xid, tx := range h.open.all() {
		if k.open.get(xid) == nil {
			k.open.put(xid, tx)
		}
	}
	before := cap(k.naks)
	k.naks = append(k.naks, h.naks...)
	t.halves.grew(k, (cap(k.naks)-before)*refusalSize)
	if k.early == nil && h.early != nil {
		k.early, k.earlySize = h.early, h.earlySize
		t.halves.grew(k, k.earlySize)
	}
	for _, s := range h.memory.byHandle {
		k.memory.splice(s)
	}
	for i := range h.recent.list {
		if e := h.recent.list[i]; e.set {
			*k.recent.next() = e
		}
	}
	if k.orphans == nil && h.orphans != nil {
		k.orphans = h.orphans
		t.halves.grew(k, orphansSize+k.orphans.owned())
	}
}

// resolve replaces the connection of a transaction by the one that it has
// become part of. Which side makes forward calls may be known only now.
func (t *Transaction) resolve() {
	for t.Connection.MergedInto != nil {
		if t.Connection.Turned {
			t.From = t.From.Other()
		}
		t.Connection = t.Connection.MergedInto
	}
	if f := forwardSide(t.Connection); f != unknownSide {
		t.Backward = f != t.From
	}
}
