package roce

// sequence tells where the requests of a flow are, in the sender's PSN space.
type sequence struct {
	started bool
	next    uint32 // PSN of the next new request
	// announced means that next comes from the connection setup and no request has been seen yet.
	announced bool
	// opening means that tracking started at floor, the lowest PSN seen. Until that is acknowledged, packets
	// before it may be retransmitted.
	opening bool
	floor   uint32
	blind   bool // next is a guess: the headers of a Read Request or Write were cut
	unsure  bool // next is a guess: it follows a Read Request of unknown packet count
	reached bool // next is where the flow was at the end of its connection
	refused bool // the peer has sent a NAK for refusedAt
	strays  int  // consecutive packets from before everything remembered
	// refusedAt is the PSN that the peer expects.
	refusedAt uint32
	// owed says that owedPSN was acknowledged before a request with it was seen.
	owed     bool
	owedPSN  uint32
	missing  psnSet
	gone     psnSet // given up: acknowledged without having been seen, or older than the first one seen
	headless psnSet // missing PSNs that were seen, but not the beginning of their message
}

// astray reports whether the flow cannot have reached the PSN of a request: the queue pair number now belongs
// to another connection, or the capture lacks a great deal.
func (s *sequence) astray(psn uint32) bool {
	d := psnDiff(psn, s.next)
	return d >= maxJump || d <= -maxJump || d < 0 && s.strays >= maxStrays
}

// goesOnAt reports whether a request with that PSN is the next new one, or one behind it if the capture lacks some.
func (s *sequence) goesOnAt(psn uint32) bool {
	d := psnDiff(psn, s.next)
	return d == 0 || d > 0 && d < maxJump && (s.started || s.reached) && !s.unsure && !s.blind
}

// inBlindWrite reports whether a packet goes on with a Write whose headers were cut, or with a later one that
// is not followed either.
func (s *sequence) inBlindWrite(p *Packet) bool {
	if !p.Opcode.IsWrite() || p.Opcode.Starts() {
		return false
	}
	s.next = psnAdd(p.PSN, 1)
	s.blind = !p.Opcode.Ends()
	return true
}

// below reports whether psn may have been sent before tracking of the flow started.
func (s *sequence) below(psn uint32) bool {
	d := psnDiff(s.floor, psn)
	return d > 0 && d <= maxOpening
}

// foreign reports whether an acknowledged PSN is of requests that were never seen. One that is near behind them is remembered: the capture
// lacks its request.
func (s *sequence) foreign(psn uint32) bool {
	d := psnDiff(psn, s.next)
	if d >= 0 && d < pairWindow && !s.announced && !s.unsure && !s.blind {
		s.owed, s.owedPSN = true, psn
	}
	return d < -maxJump || d >= pairWindow && !s.unsure
}

// strange reports whether an acknowledgement may be of a PSN that was never sent: see unsent.
func (s *sequence) strange(psn uint32) bool {
	d := psnDiff(psn, s.next)
	return d >= maxJump || d <= -maxJump || s.opening && psnDiff(psn, s.floor) < 0
}
