package text

import (
	"fmt"
	"strings"
)

// Plural is a number with the noun that it counts: "1 packet", "2 packets", "2 summaries".
func Plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if s, ok := strings.CutSuffix(what, "y"); ok && s != "" && !strings.ContainsRune("aeiou", rune(s[len(s)-1])) {
		return fmt.Sprintf("%d %sies", n, s)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
