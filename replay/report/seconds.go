package report

import (
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
)

// Second is one second of a run, or several where the run was long.
type Second struct {
	From    time.Duration `json:"from_ns"` // from the start of the run
	Took    time.Duration `json:"took_ns"`
	Calls   int           `json:"calls"` // whose replies came
	Wrong   int           `json:"wrong"` // of these, that were worse or different
	Bytes   uint64        `json:"bytes"` // of data, read and written
	Latency Spread        `json:"latency"`
	// Histogram has the latencies in the buckets of an HDR histogram, at most 3 % wide, without empty ones. In a long run that fills
	// maxBuckets they are wider, up to 12 %.
	Histogram []latency.Bin `json:"histogram"`
}

// seconds collects what each second of a run did.
type seconds struct {
	list  []Second
	width time.Duration // of each; 0 stands for a second
	open  samples       // latencies of the last one
	bins  map[int64]uint64
	all   int // buckets in list
}

// maxBuckets is how many buckets the histograms have before they are made coarser.
const maxBuckets = 1 << 18

// maxSeconds bounds the list. When it is full, those to come are twice as long.
const maxSeconds = 1 << 12

// add adds a call, whose reply came at a time of the run. Calls come nearly in the order of their replies: one that is late counts for the last
// interval.
func (s *seconds) add(at, took time.Duration, wrong bool, bytes uint64) {
	if s.width == 0 {
		s.width = time.Second
	}
	if n := len(s.list); n == 0 || at >= s.list[n-1].From+s.list[n-1].Took {
		s.close()
		s.open, s.bins = samples{values: s.open.values[:0]}, map[int64]uint64{}
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
	s.open.add(took)
	digits := 6
	if s.all >= maxBuckets {
		digits = 4
	}
	shift := max(bits.Len64(uint64(max(took, 0)))-digits, 0)
	s.bins[(int64(max(took, 0))>>shift+1)<<shift-1]++
}

// sortedBins are the buckets of a histogram, by the largest value of each.
func sortedBins(counts map[int64]uint64) []latency.Bin {
	list := make([]latency.Bin, 0, len(counts))
	for _, to := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, latency.Bin{To: to, Count: counts[to]})
	}
	return list
}

// close summarizes the last interval.
func (s *seconds) close() []Second {
	if n := len(s.list); n > 0 {
		x := &s.list[n-1]
		x.Latency, x.Histogram = s.open.spread(), sortedBins(s.bins)
		s.all += len(x.Histogram)
	}
	return s.list
}
