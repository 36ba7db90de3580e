package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	all := []string{"report", "packets", "split", "show", "--ports", "--Port"}
	for _, c := range []struct {
		name string
		want []string
	}{
		{"repot", []string{"report"}}, {"REPORT", []string{"report"}}, {"pakcets", []string{"packets"}}, {"shwo", []string{"show"}},
		{"", nil}, {"nothing", nil}, {"--port", []string{"--Port"}}, {strings.Repeat("x", 1000), nil},
	} {
		if got := Names(c.name, all); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		limit int
		want  int
	}{
		{"", "", 3, 0}, {"abc", "abc", 3, 0}, {"abc", "abd", 3, 1}, {"abc", "acb", 3, 1}, {"abc", "ab", 3, 1}, {"abc", "xabc", 3, 1},
		{"abc", "xyz", 3, 3}, {"abc", "xyz", 1, 2}, {"ca", "abc", 3, 3}, {"abc", strings.Repeat("x", 200), 3, 4},
	} {
		if got := distance(c.a, c.b, c.limit); got != c.want {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
