package state

import "net/netip"

// Source is where a client comes from, for fair shares (transport.Peer.Source).
type Source = netip.Addr

// shares divides a limited amount between sources. A source gets at most half of what the others
// leave: n greedy sources end up with 1/(n+1) each, and the next one still gets half of that.
type shares struct {
	limit, used int
	by          map[Source]int
}

// room is how much more a source may have.
func (s *shares) room(from Source) int {
	mine := s.by[from]
	return (s.limit-(s.used-mine)+1)/2 - mine
}

// take allots n to a source, if that is within its share.
func (s *shares) take(from Source, n int) bool {
	if n > s.room(from) {
		return false
	}
	if s.by == nil {
		s.by = map[Source]int{}
	}
	s.by[from] += n
	s.used += n
	return true
}

// give returns n from a source.
func (s *shares) give(from Source, n int) {
	s.used -= n
	if s.by[from] -= n; s.by[from] <= 0 {
		delete(s.by, from)
	}
}

// greediest is the source that has most.
func (s *shares) greediest() (from Source) {
	most := 0
	for src, n := range s.by {
		if n > most {
			from, most = src, n
		}
	}
	return from
}
