package monitor

import "github.com/rpcrdma/toolkit/analyze/diagnosis"

// why diagnoses slow calls.
type why struct {
	*diagnosis.Recorder
	whole *diagnosis.Report
	seen  uint64 // transactions that had ended when whole was made
}

// whys adds the diagnoses to a snapshot. That of all calls is not made for each interval: there may be as many intervals as packets.
func (m *Model) whys(s *Snapshot) {
	if w := &m.why; !m.closing && (w.whole == nil || w.seen != m.seen) {
		w.whole, w.seen = w.Report(), m.seen
	}
	s.Why, s.WhyBeyond = m.why.whole, m.why.Beyond()
	if m.closed {
		s.WhyNow, s.WhyLeft = m.why.Interval()
	}
}
