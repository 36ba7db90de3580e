package bench

import (
	"cmp"
	"slices"
)

// Middle merges the results of a job that was measured several times. For each part it returns the round with the median calls a second,
// with the spread of the rounds. If a round failed, it returns that one.
func Middle(rounds [][]*Result) []*Result {
	var out []*Result
	for i := range rounds[0] {
		var of []*Result
		for _, list := range rounds {
			if i < len(list) {
				of = append(of, list[i])
			}
		}
		slices.SortStableFunc(of, func(a, b *Result) int { return cmp.Compare(a.PerSecond(), b.PerSecond()) })
		r := *of[len(of)/2]
		if k := slices.IndexFunc(of, func(x *Result) bool { return x.Err != "" }); k >= 0 {
			r = *of[k]
		} else if mid := r.PerSecond(); len(of) > 1 && mid > 0 {
			r.Rounds, r.Spread = len(of), (of[len(of)-1].PerSecond()-of[0].PerSecond())/mid
		}
		out = append(out, &r)
	}
	return out
}
