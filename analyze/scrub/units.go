package scrub

import "bytes"

// copies finds retransmissions of u in the window: packets with its PSN and queue pair. If the newest one has the same payload, u gets the same
// scrubbed payload.
func (s *Scrubber) copies(here unitRef, h *held, u *unit) {
	if last, ok := s.units[u.key]; ok {
		u.prev = last
		if old, of := s.unit(last); old != nil && bytes.Equal(of.data[old.payload.from:old.payload.to], h.data[u.payload.from:u.payload.to]) {
			copy(h.out[u.payload.from:u.payload.to], of.out[old.payload.from:old.payload.to])
		}
	}
	s.units[u.key] = here
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

// mostCopies is how many copies of a packet are changed.
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
	r := s.units[key]
	for range mostCopies {
		u, h := s.unit(r)
		if u == nil || u.key != key {
			return
		}
		if r != not {
			put(h.data, h.out, u.payload, was, is)
		}
		r = u.prev
	}
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

// forgetUnits removes a packet that leaves the window.
func (s *Scrubber) forgetUnits(number uint64, h *held) {
	for i := range h.units {
		if u := &h.units[i]; u.key != 0 && s.units[u.key] == (unitRef{number, i}) {
			delete(s.units, u.key)
		}
	}
}
