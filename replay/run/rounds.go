package run

import (
	"context"
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// round is a replay of the plan that belongs to a series. Each one has clients and directories of its own.
type round struct {
	number int // from 1; 0 is a run without a series
	record *report.Recorder
}

// The rounds of a rate that is tried: they end when they have taken stepTime together, or when there are maxStepRounds.
const (
	stepTime      = time.Second
	maxStepRounds = 32
	maxSteps      = 24  // rates that are tried
	reached       = 0.9 // of a rate, at least
)

// series repeats the plan, and puts the rounds together.
func (o *Options) series(ctx context.Context, load *workload.Workload, first int, more func(r *report.Report, rounds int) bool) (all *report.Report, rounds int, err error) {
	record := report.NewRecorder(o.Mismatches)
	record.WarmUp = o.WarmUp
	for rounds = 1; ; rounds++ {
		one := *o
		one.Reuse = o.Reuse || first+rounds > 2
		one.VerifyFiles = false
		one.Tag = fmt.Sprintf("%s.%d", o.Tag, first+rounds-1)
		r, err := once(ctx, load, one, round{first + rounds - 1, record})
		if r != nil {
			r.Join(all)
			all = r
			all.Setup.Rounds = rounds
			// The captured times, and what became of the bytes that were written, would be those of one round.
			all.Overlay, all.Written = []report.OverlayBin{}, report.Written{}
		}
		if err != nil || r == nil || r.Stopped != "" || !more(all, rounds) {
			return all, rounds, err
		}
	}
}

// loop repeats the plan Options.Rounds times, or until Options.LoopFor is over.
func (o *Options) loop(ctx context.Context, load *workload.Workload) (*report.Report, error) {
	began := time.Now()
	r, _, err := o.series(ctx, load, 1, func(_ *report.Report, rounds int) bool {
		return rounds < o.Rounds || o.LoopFor > 0 && time.Since(began) < o.LoopFor
	})
	return r, err
}

// findMax finds the highest rate at which the latency is not too long. The report is that of this rate, or of the last one if none holds.
func (o *Options) findMax(ctx context.Context, load *workload.Workload) (best *report.Report, err error) {
	var steps []report.Step
	held, next := false, 1
	highest(o.Rate, func(rate float64) (holds, goOn bool) {
		one := *o
		one.Rate = rate
		var r *report.Report
		var rounds int
		r, rounds, err = one.series(ctx, load, next, func(r *report.Report, rounds int) bool {
			return rounds < maxStepRounds && r.Took < stepTime+o.WarmUp
		})
		if r == nil {
			return false, false
		}
		next += rounds
		s := report.Step{Rate: rate, Reached: float64(r.Sent) / max(r.Took.Seconds(), 1e-9), Latency: r.Latency}
		s.Holds = r.Latency.Count > 0 && r.Latency.P99 <= o.MaxP99 && s.Reached >= reached*rate
		if steps = append(steps, s); s.Holds || !held {
			best, held = r, s.Holds
		}
		return s.Holds, err == nil && r.Stopped == "" && len(steps) < maxSteps
	})
	if best != nil {
		best.Steps = steps
	}
	return best, err
}

// highest doubles a rate until it does not hold, or halves it until it does, and approaches the highest one that holds to a tenth.
func highest(rate float64, try func(rate float64) (holds, goOn bool)) {
	low, high := 0.0, 0.0
	for {
		holds, goOn := try(rate)
		if holds {
			low = rate
		} else {
			high = rate
		}
		switch {
		case !goOn, low == 0 && rate < 1, high > 0 && high <= 1.1*low:
			return
		case high == 0:
			rate *= 2
		case low == 0:
			rate /= 2
		default:
			rate = (low + high) / 2
		}
	}
}
