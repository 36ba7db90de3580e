package transaction

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// A client whose connection breaks makes another one and sends again, with the
// same XIDs, what has not been answered. reconnects finds such calls.
//
// They are among the first that a connection carries, so that only those are
// looked at; and their first copy came before the connection was made. An XID
// alone proves nothing — clients exist that count from 1 on every connection —
// but with the same RPC message it does.
type reconnects struct {
	live map[hosts][]*half // connections with calls
	past map[pastKey]pastCall
	fifo []pastKey // of past, in the order of their coming; from at
	at   int

	counted int // of fifo
}

// hosts are the addresses of requester and responder.
type hosts struct {
	client, server netip.Addr
	tenant         uint64
}

type pastKey struct {
	hosts
	xid uint32
}

// pastCall is a call of a connection that is closed.
type pastCall struct {
	fabric rdma.Fabric
	sum    uint64
	number uint64   // first packet
	origin int      // connection of the first copy
	first  int64    // when that was sent
	tag    rdma.Tag // of the call, if it was open
}

const (
	maxResent   = 1024 // calls of a connection that are looked at
	maxSiblings = 32   // connections between two hosts that are searched
	maxPast     = 2048
)

func (h *half) addresses() hosts {
	return hosts{h.c.Ends[h.side].Addr, h.c.Ends[h.side.Other()].Addr, h.c.Tenant}
}

// sum is a checksum of a call's RPC message as far as that is inline.
func (t *Transaction) sum() uint64 {
	b := t.Call.Payload
	s := wire.Sum64(0, b[:min(len(b), summed)])
	if t.Call.Transport && !t.Call.Header.Plain() {
		s ^= t.Call.Header.PositionZero().Length
	}
	return s ^ uint64(t.Call.PayloadLength)<<32
}

// summed is how many bytes of a message its sum covers.
const summed = 256

// resent looks for an earlier copy of a call of h on another connection.
func (r *reconnects) resent(tx *Transaction, h *half, all *entries) {
	if h.calls >= maxResent {
		return
	}
	h.calls++
	r.opened(h)
	c := tx.Connection
	if c.Fabric == rdma.UDP || len(r.past) == 0 && len(r.live[h.hosts]) < 2 {
		return
	}
	sum := tx.sum()
	list := r.live[h.hosts]
	list = list[max(0, len(list)-maxSiblings):]
	for i := len(list) - 1; i >= 0; i-- {
		o := list[i]
		if o == h || o.c.Fabric != c.Fabric {
			continue
		}
		if old := o.open.get(tx.XID); old != nil && old.Call.Seen() && old.Call.First.Number < c.First.Number && old.sum() == sum {
			tx.again(old.from(), old.FirstSent())
			old.Note(Note{Kind: ResentOn, N: uint64(c.ID)})
			return
		}
		if e := o.recent.again(tx, sum); e != nil {
			tx.again(e.origin, e.first)
			return
		}
	}
	if p, ok := r.past[pastKey{h.hosts, tx.XID}]; ok && p.fabric == c.Fabric && p.sum == sum && p.number < c.First.Number {
		tx.again(p.origin, p.first)
		if old, _ := all.ofSend(p.tag); old != nil {
			old.Note(Note{Kind: ResentOn, N: uint64(c.ID)})
		}
	}
}

// from is the connection of the first copy of a call.
func (t *Transaction) from() int {
	if t.origin != 0 {
		return t.origin
	}
	return t.Connection.Resolve().ID
}

func (t *Transaction) again(origin int, first int64) {
	t.origin, t.sentFirst = origin, first
	t.Note(Note{Kind: ResentFrom, N: uint64(origin)})
}

// opened puts a connection into the list of its hosts.
func (r *reconnects) opened(h *half) {
	if h.place != 0 {
		return
	}
	if r.live == nil {
		r.live = make(map[hosts][]*half)
	}
	h.hosts = h.addresses()
	r.live[h.hosts] = append(r.live[h.hosts], h)
	h.place = len(r.live[h.hosts])
}

// left takes a connection out of the list.
func (r *reconnects) left(h *half) {
	if h.place == 0 {
		return
	}
	k := h.hosts
	list := r.live[k]
	last := len(list) - 1
	list[h.place-1] = list[last]
	list[h.place-1].place = h.place
	list[last] = nil
	h.place = 0
	if last == 0 {
		delete(r.live, k)
	} else {
		r.live[k] = list[:last]
	}
}

// closed takes a connection out of the list, and keeps what may come again.
func (r *reconnects) closed(h *half) {
	if h.place == 0 {
		return
	}
	r.left(h)
	if h.c.Fabric == rdma.UDP {
		return
	}
	k := h.hosts
	for _, tx := range h.open.all() {
		if tx.Call.Seen() {
			r.keep(pastKey{k, tx.XID}, pastCall{h.c.Fabric, tx.sum(), tx.Call.First.Number, tx.from(), tx.FirstSent(), tx.sendTag(false)})
		}
	}
	for i := range h.recent.list {
		if e := &h.recent.list[i]; e.set && e.number != 0 {
			r.keep(pastKey{k, e.xid}, pastCall{h.c.Fabric, e.sum, e.number, e.origin, e.first, rdma.Tag{}})
		}
	}
}

// grown is by how many bytes the calls of closed connections have become more
// since it was called last.
func (r *reconnects) grown() int {
	n := len(r.fifo) - r.counted
	r.counted += n
	return n * pastSize
}

func (r *reconnects) keep(k pastKey, p pastCall) {
	if r.past == nil {
		r.past = make(map[pastKey]pastCall)
	}
	if old, ok := r.past[k]; ok && old.number > p.number {
		return
	} else if !ok {
		if len(r.fifo) < maxPast {
			r.fifo = append(r.fifo, k)
		} else {
			delete(r.past, r.fifo[r.at])
			r.fifo[r.at] = k
			r.at = (r.at + 1) % maxPast
		}
	}
	r.past[k] = p
}
