package rocetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// The mutators change what a capture shows of the same traffic. None changes
// the records that it is given.

// Drop leaves out each record with a probability, as an overloaded capture
// does, in runs of up to burst.
func Drop(records []Record, seed uint64, p float64, burst int) []Record {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []Record
	for i := 0; i < len(records); i++ {
		if rng.Float64() < p {
			i += rng.IntN(max(burst, 1))
			continue
		}
		out = append(out, records[i])
	}
	return out
}

// Only keeps the records for which keep is true.
func Only(records []Record, keep func(*Record) bool) []Record {
	var out []Record
	for i := range records {
		if keep(&records[i]) {
			out = append(out, records[i])
		}
	}
	return out
}

// Double shows some packets twice.
func Double(records []Record, seed uint64, p float64) []Record {
	rng := rand.New(rand.NewPCG(seed, 2))
	var out []Record
	for _, r := range records {
		out = append(out, r)
		if rng.Float64() < p {
			r.Time += 2000
			out = append(out, r)
		}
	}
	return sorted(out)
}

// Shuffle moves some records to a later place, as captures from several queues
// do. The times stay those of the places.
func Shuffle(records []Record, seed uint64, p float64, far int) []Record {
	rng := rand.New(rand.NewPCG(seed, 3))
	out := slices.Clone(records)
	for i := range out {
		if rng.Float64() >= p {
			continue
		}
		j := min(i+1+rng.IntN(far), len(out)-1)
		r := out[i]
		copy(out[i:], out[i+1:j+1])
		out[j] = r
	}
	for i := range out {
		out[i].Time = records[i].Time
	}
	return out
}

// Snap cuts payloads to n bytes.
func Snap(records []Record, n int) []Record {
	out := slices.Clone(records)
	for i := range out {
		out[i].Cut = n
	}
	return out
}

// Merge puts several captures together by time, each with a clock that is
// ahead by so much.
func Merge(skew []int64, captures ...[]Record) []Record {
	var out []Record
	for i, c := range captures {
		for _, r := range c {
			if i < len(skew) {
				r.Time += skew[i]
			}
			out = append(out, r)
		}
	}
	return sorted(out)
}

func sorted(records []Record) []Record {
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
	return records
}
