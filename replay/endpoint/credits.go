package endpoint

// ask returns how many credits a call asks for.
func (c *caller) ask() uint32 {
	if c.backward {
		return c.o.BackwardCredits
	}
	if c.o.Policy != CreditsDynamic {
		return c.o.Credits
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = c.o.Dynamic.ask(c.granted, c.inFlight, c.o.MaxCredits)
	return c.asked
}

// ask is the Requester's policy of OSU-CISRC-4/06-TR43, figure 10.
func (d *Dynamic) ask(granted, inFlight, most uint32) uint32 {
	n := d.Minimum
	if int64(granted)-int64(inFlight) < int64(d.Threshold) {
		n += uint32(min(float64(inFlight)*d.ClientFactor, maxCredits))
	}
	return min(max(n, 1), most)
}

// grant is the Responder's policy of OSU-CISRC-4/06-TR43, figure 11.
func (d *Dynamic) grant(asked, posted, connections, most uint32) uint32 {
	average := d.Buffers / max(connections, 1)
	var n uint32
	switch {
	case asked <= posted:
		n = posted
	case asked <= average:
		n = asked
	default:
		n = uint32(min(float64(average)+float64(asked-average)*d.ServerFactor, maxCredits))
		if n < posted {
			n = posted // those receives exist already
		}
	}
	return min(max(n, 1), most)
}

// grant returns how many credits a reply grants.
func (s *server) grant(l *link, asked uint32) uint32 {
	switch {
	case s.backward:
		return s.o.BackwardCredits
	case s.o.Policy == CreditsFixed:
		return min(max(asked, 1), s.o.Credits)
	case s.o.Policy != CreditsDynamic:
		return s.o.Credits
	}
	connections := uint32(1)
	if s.connections != nil {
		connections = uint32(max(s.connections.Load(), 1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.o.Dynamic.grant(asked, s.posted, connections, s.o.MaxCredits)
	if n > s.posted {
		l.mu.Lock()
		more, err := l.addReceives(int(n - s.posted))
		if err == nil {
			l.repost = append(l.repost, more...)
		}
		l.mu.Unlock()
		if err != nil {
			return s.posted
		}
		s.posted = n
	}
	return n
}
