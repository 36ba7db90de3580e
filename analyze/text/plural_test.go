package text

import "testing"

func TestPlural(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 packets", 1: "1 packet", 2: "2 packets"} {
		if got := Plural(n, "packet"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Plural(2, "summary"); got != "2 summaries" {
		t.Error(got)
	}
}
