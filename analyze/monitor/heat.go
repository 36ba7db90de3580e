package monitor

import "math/bits"

// A heat map counts latencies in bands of half an octave: 1024ns to 1536ns, to 2048ns, to 3072ns and so on.
// The first band holds everything below, the last everything above.
const (
	heatShift = 10 // the first band ends at 2^heatShift ns
	// HeatBands is the number of bands.
	HeatBands = 2*26 + 1
)

// Heat counts latencies by band.
type Heat [HeatBands]uint32

// band is the band of a latency.
func band(ns int64) int {
	n := bits.Len64(uint64(max(ns, 0)))
	if n <= heatShift {
		return 0
	}
	half := int(uint64(ns) >> (n - 2) & 1)
	return min(1+2*(n-1-heatShift)+half, HeatBands-1)
}

// HeatFrom is the shortest latency of a band in nanoseconds.
func HeatFrom(band int) int64 {
	if band <= 0 {
		return 0
	}
	n := int64(1) << (heatShift + (band-1)/2)
	if (band-1)%2 == 1 {
		n += n / 2
	}
	return n
}
