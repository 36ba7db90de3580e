package text

import "fmt"

// Plural is a number with the noun that it counts: "1 packet", "2 packets".
func Plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
