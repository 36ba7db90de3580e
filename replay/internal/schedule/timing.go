package schedule

import "time"

// Timing says when calls are sent.
type Timing uint8

// Timings.
const (
	// AsCaptured sends at the captured times, divided by Options.Speed, and never
	// before the replies that a call depends on.
	AsCaptured Timing = iota
	// Think keeps the time between a reply and the call that followed it on the same
	// connection, divided by Options.Speed.
	Think
	// Fast sends as soon as dependencies allow.
	Fast
	// FixedRate sends Options.Rate calls a second, dependencies permitting.
	FixedRate
)

var timings = [...]string{"as captured", "think time", "as fast as dependencies allow", "fixed rate"}

func (t Timing) String() string { return timings[t] }

// Paced reports whether calls are sent at captured times or intervals.
func (t Timing) Paced() bool { return t == AsCaptured || t == Think }

// Options of a Schedule.
type Options struct {
	Timing Timing
	Speed  float64 // AsCaptured, Think: times as fast; more than 0
	Rate   float64 // FixedRate: calls a second; more than 0
	// Relaxed gives up the captured order of calls that only their time connects.
	// Without it Fast and FixedRate keep that order.
	Relaxed bool
	Clones  int // copies of the plan
	// Stagger is how much later each copy begins than the one before.
	Stagger time.Duration
}

// scaled is a captured time in nanoseconds at the speed of the replay.
func (o *Options) scaled(captured int64) time.Duration {
	return Span(float64(captured) / o.Speed)
}

// maxSpan is longer than any run waits, some 36 years, and small enough that sums with it do not overflow.
const maxSpan = 1 << 60

// Span is a time in nanoseconds. What a time.Duration cannot hold would be a time in the past, and calls
// that are to be sent never would be sent at once.
func Span(nanoseconds float64) time.Duration {
	if nanoseconds < maxSpan {
		return time.Duration(nanoseconds)
	}
	return maxSpan
}
