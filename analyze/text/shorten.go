package text

// Shorten makes foreign text safe for a terminal (see Safe) and removes its middle, so that at most limit
// columns remain.
func Shorten(s []byte, limit int) []byte {
	b, width := Safe(nil, s)
	b, _ = shorten(b, 0, width, limit)
	return b
}
