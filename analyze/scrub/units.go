package scrub

import "bytes"

// newest are the newest units, by a part of their keys. From each, prev leads to those before.
type newest [1 << newestBits]unitRef

const newestBits = 14

func (n *newest) of(key unitKey) *unitRef { return &n[key%unitKey(len(n))] }

// copies finds retransmissions of u in the window: packets with its PSN and queue pair. If the newest one has the same payload, u gets the same
// scrubbed payload.
func (s *Scrubber) copies(here unitRef, h *held, u *unit) {
	first := s.units.of(u.key)
	u.prev = *first
	s.copiesOf(u.key, func(_ unitRef, old *unit, of *held) bool {
		if bytes.Equal(of.data[old.payload.from:old.payload.to], h.data[u.payload.from:u.payload.to]) {
			copy(h.out[u.payload.from:u.payload.to], of.out[old.payload.from:old.payload.to])
		}
		return false
	})
	*first = here
}

// copiesOf visits the units with a key, the newest first, until f returns false.
func (s *Scrubber) copiesOf(key unitKey, f func(unitRef, *unit, *held) bool) {
	r := *s.units.of(key)
	for range mostCopies {
		u, h := s.unit(r)
		if u == nil || u.key == key && !f(r, u, h) {
			return
		}
		r = u.prev
	}
}

// unit is what r names; nil if it has left the window.
func (s *Scrubber) unit(r unitRef) (*unit, *held) {
	if r.number == 0 || s.window.Packet(r.number) == nil {
		return nil, nil
	}
	h := s.window.At(r.number)
	if r.index >= len(h.units) {
		return nil, nil
	}
	return &h.units[r.index], h
}

// mostCopies is how many packets are looked at to find the copies of one.
const mostCopies = 64

// change puts is in the place of was in the payload of a packet of RoCE or InfiniBand, and of its copies.
func (s *Scrubber) change(number uint64, psn uint32, was, is []byte) {
	if s.window.Packet(number) == nil {
		s.stats.Late++
		return
	}
	h := s.window.At(number)
	for i := range h.units {
		u := &h.units[i]
		if u.key == 0 || len(h.units) > 1 && u.psn != psn {
			continue
		}
		if put(h.data, h.out, u.payload, was, is) {
			s.others(unitRef{number, i}, u.key, was, is)
			return
		}
	}
}

// leave copies the payload of a packet, and of its copies, as it is.
func (s *Scrubber) leave(number uint64, psn uint32) {
	if s.window.Packet(number) == nil {
		s.stats.Late++
		return
	}
	h := s.window.At(number)
	for i := range h.units {
		if u := &h.units[i]; u.key != 0 && u.psn == psn {
			b := h.data[u.payload.from:u.payload.to]
			put(h.data, h.out, u.payload, b, b)
			s.others(unitRef{number, i}, u.key, b, b)
		}
	}
}

// others changes the copies of a packet.
func (s *Scrubber) others(not unitRef, key unitKey, was, is []byte) {
	s.copiesOf(key, func(r unitRef, u *unit, h *held) bool {
		if r != not {
			put(h.data, h.out, u.payload, was, is)
		}
		return true
	})
}

// put writes is to the copy of a payload that begins with was. It returns false if it does not.
func put(data, out []byte, payload span, was, is []byte) bool {
	n := min(len(was), payload.len())
	at := payload.from
	if len(was) > payload.len() || !bytes.Equal(data[at:at+n], was[:n]) {
		return false
	}
	copy(out[at:at+n], is[:n])
	return true
}
