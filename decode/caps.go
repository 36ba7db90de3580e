package decode

import "slices"

// caps says how much each group may hold from now on, given how much each holds.
func (g *groups) caps(used *[maxGroups]int, caps *[maxGroups]int) {
	total, n := 0, 0
	for _, u := range used {
		if u > 0 {
			n++
		}
		total += u
	}
	room := g.limit - total
	level := 0
	if room < 0 {
		level = g.level(used)
	}
	for i, u := range used {
		switch {
		case total <= g.limit/4:
			caps[i] = g.limit
		case room >= 0: // they may not all need it at once
			caps[i] = u + max(room/max(n, 1), room/8)
		default:
			caps[i] = level
		}
		caps[i] = max(caps[i], g.limit/(4*maxGroups))
	}
}

// level is what each group may hold at most so that all together hold what they may: those that hold less need
// not give up anything.
func (g *groups) level(used *[maxGroups]int) int {
	sorted := *used
	slices.Sort(sorted[:])
	left := g.limit
	for i, u := range sorted {
		if share := left / (maxGroups - i); u > share {
			return share
		}
		left -= u
	}
	return g.limit
}
