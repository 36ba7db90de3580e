package plan

import (
	"testing"
)

func TestPattern(t *testing.T) {
	whole := make([]byte, 300)
	FillPattern(whole, 7, 1000)
	for _, c := range []struct{ from, n int }{{0, 300}, {1, 7}, {8, 8}, {13, 200}, {299, 1}} {
		part := make([]byte, c.n)
		FillPattern(part, 7, uint64(1000+c.from))
		if string(part) != string(whole[c.from:c.from+c.n]) {
			t.Errorf("%+v: another pattern", c)
		}
	}
	other := make([]byte, 300)
	FillPattern(other, 8, 1000)
	if string(other) == string(whole) {
		t.Error("two files have the same pattern")
	}
}
