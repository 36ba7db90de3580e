package order

// Limits of all histories together. Most captures stay below crowded; from
// there on a history is kept shorter, which adds order that the captured client
// has kept as well. Beyond maxUses, uses are forgotten.
const (
	crowded      = 1 << 16
	crowdHistory = 64
	// MaxUses is how many uses are remembered without Uses.Max.
	MaxUses = 1 << 18
)

// Uses bounds the memory of all histories together.
type Uses struct {
	Max   int                  // uses that are remembered
	Each  func(func(*History)) // visits all histories
	Limit func(what string)    // is told what was given up

	n int // in all histories, or more
}

// maxHistory is the length from which on one use replaces others in a history.
func (u *Uses) maxHistory() int {
	if u.n > crowded {
		return crowdHistory
	}
	return maxHistory
}

func (u *Uses) add(now int64) {
	if u.n++; u.n > u.Max {
		u.sweep(now)
	}
}

// sweep makes room for uses. The entries that one covers no longer matter once its own reply has
// come: all later calls were sent after it. If that is not enough, only the latest uses of each
// thing remain.
func (u *Uses) sweep(now int64) {
	for _, keep := range []int{maxHistory, 8, 1} {
		u.n = 0
		u.Each(func(h *History) { u.n += h.shorten(now, keep) })
		if keep < maxHistory {
			u.Limit("more uses of files and states than are remembered: dependencies lost")
		}
		if u.n <= MaxUses/2 {
			break
		}
	}
	u.Max = max(MaxUses, 2*u.n)
}
