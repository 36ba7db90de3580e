package text

import "fmt"

// Rounded is a number with three digits and a unit letter: unit is 1000 or 1024, and K, M, G … stand for its
// powers. Unlike Size, it is not exact.
func Rounded(f, unit float64) string {
	const letters = "KMGTPE"
	i := -1
	for f >= unit && i < len(letters)-1 {
		f /= unit
		i++
	}
	var s string
	switch {
	case i < 0 && f == float64(int64(f)):
		return fmt.Sprintf("%.0f", f)
	case f >= 100:
		s = fmt.Sprintf("%.0f", f)
	case f >= 10:
		s = fmt.Sprintf("%.1f", f)
	default:
		s = fmt.Sprintf("%.2f", f)
	}
	if i >= 0 {
		s += letters[i : i+1]
	}
	return s
}
