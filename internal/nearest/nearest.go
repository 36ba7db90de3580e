// Package nearest finds the names that somebody who mistyped one may have meant.
package nearest

import (
	"slices"
	"strings"
)

// maxName is the length of the longest name that is compared, in bytes.
const maxName = 64

// Names returns those candidates that are nearest to a misspelt name, without
// regard to case, in their order; nil if none is near. One letter in four may
// differ, and one more.
func Names(name string, candidates []string) []string {
	if len(name) == 0 || len(name) > maxName {
		return nil
	}
	limit := 1 + len(name)/4
	best := limit + 1
	var found []string
	lower := strings.ToLower(name)
	for _, c := range candidates {
		if len(c) > len(name)+limit || len(c) < len(name)-limit {
			continue
		}
		d := distance(lower, strings.ToLower(c), best)
		switch {
		case d > limit || d > best:
		case d < best:
			best, found = d, append(found[:0], c)
		case !slices.Contains(found, c):
			found = append(found, c)
		}
	}
	return found
}

// distance is the number of letters to change, insert, drop or swap with
// their neighbour to make b of a. Anything above limit is limit+1.
func distance(a, b string, limit int) int {
	var rows [3][130]int
	if len(b) >= len(rows[0]) {
		return limit + 1
	}
	prev2, prev, row := rows[0][:], rows[1][:], rows[2][:]
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			d := min(prev[j]+cost, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, prev2[j-1]+1)
			}
			row[j+1] = d
			least = min(least, d)
		}
		if least > limit {
			return limit + 1
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
