package text

// Shorten makes text of others safe for a terminal (see Safe) and cuts its
// middle out, so that at most limit columns are left.
func Shorten(s []byte, limit int) []byte {
	b, width := Safe(nil, s)
	b, _ = shorten(b, 0, width, limit)
	return b
}
