package roce

// The header types are byte slices. Their getters return zero and their
// setters do nothing where the slice is too short, so that a header which the
// capture cut is safe to look at; IsValid tells the difference.

// flag is mask if on, else 0.
func flag(on bool, mask uint8) uint8 {
	if on {
		return mask
	}
	return 0
}
