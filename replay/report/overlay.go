package report

import "time"

// span is a call on the wire, from the start of the replay.
type span struct{ from, to time.Duration }

// overlayBins is how many parts the time is cut into.
const overlayBins = 40

// overlay counts the calls in flight, interval by interval, in the capture and in the
// replay.
func overlay(original, live *curve, took time.Duration) []OverlayBin {
	end := max(took, original.end)
	if end <= 0 {
		return nil
	}
	out := make([]OverlayBin, overlayBins)
	width := (end + overlayBins - 1) / overlayBins
	for b := range out {
		out[b].From = time.Duration(b) * width
	}
	original.each(func(s span, calls float64) {
		cut(s, width, func(b int, share float64) { out[b].Original += calls * share })
	})
	live.each(func(s span, calls float64) {
		cut(s, width, func(b int, share float64) { out[b].Replay += calls * share })
	})
	return out
}

// cut calls f for the parts of a span, with the share of the bin that they take.
func cut(s span, width time.Duration, f func(b int, share float64)) {
	for b := max(0, int(s.from/width)); b < overlayBins; b++ {
		lo, hi := time.Duration(b)*width, time.Duration(b+1)*width
		if lo >= s.to && s.to > s.from {
			break
		}
		if part := min(hi, s.to) - max(lo, s.from); part > 0 {
			f(b, float64(part)/float64(width))
		}
		if s.to <= hi {
			break
		}
	}
}
