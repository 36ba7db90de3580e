package fabric

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Notice is which side noticed a loss, and how.
type Notice uint8

// Notices.
const (
	ByNAK      Notice = iota + 1 // the receiver: NAK "PSN sequence error"
	ByTimeout                    // the sender: no acknowledgement came in time
	ByRead                       // the reader: it requested the rest of a Read again, since later packets had come
	ByRNR                        // the receiver had no buffer: NAK "receiver not ready"
	ByDupAcks                    // iWARP: the sender of TCP, from duplicate acknowledgements
	ByTimer                      // iWARP: the sender of TCP, without duplicate acknowledgements: RTO, or the probe of RFC 8985
	ByZeroWind                   // iWARP: the receiver of TCP closed its window
	Unasked                      // nobody, as far as was seen: no NAK came, and the timeout that the setup announced had not expired
	numNotices
)

var noticeNames = [numNotices]string{
	"", "sequence NAK", "timeout", "repeated read", "receiver not ready", "duplicate ACKs", "TCP timer", "zero window", "unasked",
}

func (n Notice) String() string { return noticeNames[n] }

// Repeat is what a sender sent again, as far as was seen.
type Repeat uint8

// Repeats.
const (
	RepeatUnknown Repeat = iota // nothing was sent behind what was lost, or the end was not seen
	GoBackN                     // all from the lost packet on
	Selective                   // only what was lost
	Partly                      // some of what followed
)

var repeatNames = [...]string{"unknown", "go-back-N", "selective", "partly"}

func (r Repeat) String() string { return repeatNames[r] }

// Range is consecutive PSNs; over iWARP bytes of the stream.
type Range struct {
	Start uint64 `json:"start"`
	Count uint64 `json:"count"`
}

// maxRanges is how many ranges of lost packets an episode names.
const maxRanges = 16

// Episode is a loss, or a receiver that was not ready, with the recovery from it.
// Other losses until the sender has caught up belong to the same episode. Refs
// that were not seen are zero.
type Episode struct {
	Connection *rdma.Connection
	Service    Service
	From       rdma.Side // who sent the requests; the other side sent the lost packets if Responses is set
	Notice     Notice
	Responses  bool // Read Responses were lost
	// Overtaken says that nothing was lost: the packet that the NAK asks for had come, behind others that were sent later.
	Overtaken bool
	// Lost are the packets that went missing. If the capture point was behind the loss, they were
	// never seen, and Exact is set. If it was before the loss, only the first is known: the one
	// that was requested again.
	Lost   []Range
	Exact  bool
	Repeat Repeat

	LostAt   rdma.Ref // the lost packet as it went by; of RNR, the one that was refused
	Detected rdma.Ref // the next packet behind the loss, which reveals it to the receiver
	NAK      rdma.Ref // NAK, RNR NAK, first duplicate ACK, or first window of zero
	First    rdma.Ref // first packet that was sent again
	CaughtUp rdma.Ref // acknowledgement of all that had been sent when recovery began

	NAKs, RNRs, Timeouts uint32
	Resent               uint32 // packets, requests and responses
	ResentBytes          uint64 // as in rdma.Counters.Bytes
	// Needless of Resent had been acknowledged before they were sent again.
	Needless uint32
	// Behind is how many packets had been sent after the first lost one when it was sent again,
	// other lost ones excluded; BehindResent is how many of them were sent again, too.
	Behind, BehindResent uint32

	// Waited is how long the sender waited: of ByTimeout, Unasked and ByTimer, since the
	// last packet that it sent or the last acknowledgement, whichever was later; of ByRNR,
	// since the first NAK; of ByZeroWind, until the window opened.
	Waited time.Duration
	// Announced is what Waited is compared with: the ACK timeout of the
	// connection's setup (4.096 µs·2^n), or the timer of the RNR NAK; 0 if that
	// is not known.
	Announced time.Duration

	ranges  [maxRanges]Range
	psn     uint32 // the first lost
	target  uint32 // what has to be acknowledged
	reached uint32 // what has been since First
	last    uint32 // the last that was sent again
	nakked  bool   // since then
	rewound bool   // Responses: the first lost one has come again
	until   uint64 // iWARP: what has to be acknowledged

	attempts uint32 // how often the first lost one was sent
	payload  uint32 // of the first lost one, bytes
}

// Start is the first packet of the episode.
func (e *Episode) Start() (first rdma.Ref) {
	for _, r := range [...]rdma.Ref{e.LostAt, e.Detected, e.NAK, e.First} {
		if r.Seen() && (!first.Seen() || r.Number < first.Number) {
			first = r
		}
	}
	return first
}

// Duration is the time from Start to CaughtUp; ok is false if the sender had not
// caught up when the connection or the capture ended.
func (e *Episode) Duration() (d time.Duration, ok bool) {
	if !e.CaughtUp.Seen() {
		return 0, false
	}
	return between(e.Start(), e.CaughtUp)
}

// between is the time from a to b, if both were seen.
func between(a, b rdma.Ref) (d time.Duration, ok bool) {
	if !a.Seen() || !b.Seen() || b.Time < a.Time {
		return 0, false
	}
	return time.Duration(b.Time - a.Time), true
}

// Phases are the times of an episode, −1 where one of the two packets was not
// seen: from the lost packet to the next, which tells of the loss; from there to
// the NAK; to the first packet sent again, from the NAK if there was one; and to
// the end.
type Phases struct{ Detection, NAK, Reaction, CatchUp time.Duration }

// Phases returns the phases of e.
func (e *Episode) Phases() (p Phases) {
	get := func(a, b rdma.Ref) time.Duration {
		if d, ok := between(a, b); ok {
			return d
		}
		return -1
	}
	p.Detection, p.NAK, p.Reaction, p.CatchUp = get(e.LostAt, e.Detected), get(e.Detected, e.NAK), get(e.NAK, e.First), get(e.First, e.CaughtUp)
	if !e.NAK.Seen() {
		p.Reaction = get(e.Detected, e.First)
	}
	return p
}

// lose adds packets to the lost ones.
func (e *Episode) lose(start uint32, count uint64) {
	for i := range e.Lost {
		if g := &e.Lost[i]; rdma.PSNDiff(start, uint32(g.Start)) >= 0 && uint64(rdma.PSNDiff(start, uint32(g.Start))) < g.Count {
			return
		}
	}
	if len(e.Lost) < maxRanges {
		e.Lost = append(e.Lost, Range{uint64(start), count})
	}
}

// lost reports whether a packet is named as lost.
func (e *Episode) lost(psn uint32) bool {
	for _, g := range e.Lost {
		if d := rdma.PSNDiff(psn, uint32(g.Start)); d >= 0 && uint64(d) < g.Count {
			return true
		}
	}
	return false
}

// repeat finds out what the sender sent again.
func (e *Episode) repeat() Repeat {
	switch {
	case e.Behind == 0 || e.Responses:
		return RepeatUnknown
	case e.BehindResent == 0:
		return Selective
	case e.BehindResent >= e.Behind:
		return GoBackN
	}
	return Partly
}
