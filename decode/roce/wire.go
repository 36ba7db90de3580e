package roce

// The header types are byte slices. If the slice is too short, getters return zero and setters do nothing, so
// a header that the capture cut can be examined safely.

// flag is mask if on, else 0.
func flag(on bool, mask uint8) uint8 {
	if on {
		return mask
	}
	return 0
}
