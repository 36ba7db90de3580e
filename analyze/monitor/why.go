package monitor

import "github.com/rpcrdma/toolkit/analyze/diagnosis"

// why says why calls take long.
type why struct {
	*diagnosis.Recorder
	whole *diagnosis.Report
	seen  uint64 // ended transactions that it is about
}

// whys asks why calls took long. The whole is not looked at for each interval, of which there may be as many as packets.
func (m *Model) whys(s *Snapshot) {
	if w := &m.why; !m.closing && (w.whole == nil || w.seen != m.seen) {
		w.whole, w.seen = w.Report(), m.seen
	}
	s.Why, s.WhyBeyond = m.why.whole, m.why.Beyond()
	if m.closed {
		s.WhyNow, s.WhyLeft = m.why.Interval()
	}
}
