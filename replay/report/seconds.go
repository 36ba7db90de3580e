package report

import "time"

// Second is one second of a run, or several where the run was long.
type Second struct {
	From    time.Duration `json:"from_ns"` // from the start of the run
	Took    time.Duration `json:"took_ns"`
	Calls   int           `json:"calls"` // whose replies came
	Wrong   int           `json:"wrong"` // of these, that were worse or different
	Bytes   uint64        `json:"bytes"` // of data, read and written
	Latency Spread        `json:"latency"`
}

// seconds collects what each second of a run did.
type seconds struct {
	list  []Second
	width time.Duration // of each; 0 stands for a second
	open  samples       // latencies of the last one
}

// maxSeconds bounds the list. When it is full, those to come are twice as long.
const maxSeconds = 1 << 12

// add adds a call, whose reply came at a time of the run. Calls come nearly in the order of their replies: one that is late counts for the last
// interval.
func (s *seconds) add(at, latency time.Duration, wrong bool, bytes uint64) {
	if s.width == 0 {
		s.width = time.Second
	}
	if n := len(s.list); n == 0 || at >= s.list[n-1].From+s.list[n-1].Took {
		s.close()
		s.open = samples{values: s.open.values[:0]}
		if n > 0 && n%maxSeconds == 0 {
			s.width *= 2
		}
		from := max(at, 0).Truncate(s.width)
		if n > 0 {
			from = max(from, s.list[n-1].From+s.list[n-1].Took)
		}
		s.list = append(s.list, Second{From: from, Took: s.width})
	}
	x := &s.list[len(s.list)-1]
	x.Calls++
	x.Bytes += bytes
	if wrong {
		x.Wrong++
	}
	s.open.add(latency)
}

// close summarizes the last interval.
func (s *seconds) close() []Second {
	if n := len(s.list); n > 0 {
		s.list[n-1].Latency = s.open.spread()
	}
	return s.list
}
