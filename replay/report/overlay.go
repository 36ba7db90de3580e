package report

import "time"

// span is a call on the wire, from the start of the replay.
type span struct{ from, to time.Duration }

// maxSpans bounds what the overlay of calls in flight is made of.
const maxSpans = 1 << 22

// overlayBins is how many parts the time is cut into.
const overlayBins = 40

// overlay counts the calls in flight, interval by interval, in the capture and in the
// replay.
func overlay(original, live []span, took time.Duration) []OverlayBin {
	end := took
	for _, s := range original {
		end = max(end, s.to)
	}
	if end <= 0 {
		return nil
	}
	out := make([]OverlayBin, overlayBins)
	width := (end + overlayBins - 1) / overlayBins
	fill := func(list []span, put func(b *OverlayBin, share float64)) {
		for _, s := range list {
			for b := max(0, int(s.from/width)); b < overlayBins; b++ {
				lo, hi := time.Duration(b)*width, time.Duration(b+1)*width
				if lo >= s.to && s.to > s.from {
					break
				}
				part := min(hi, s.to) - max(lo, s.from)
				if part > 0 {
					put(&out[b], float64(part)/float64(width))
				}
				if s.to <= hi {
					break
				}
			}
		}
	}
	for b := range out {
		out[b].From = time.Duration(b) * width
	}
	fill(original, func(b *OverlayBin, share float64) { b.Original += share })
	fill(live, func(b *OverlayBin, share float64) { b.Replay += share })
	return out
}
