package text

import "testing"

func TestPlural(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 packets", 1: "1 packet", 2: "2 packets"} {
		if got := Plural(n, "packet"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for what, want := range map[string]string{"summary": "2 summaries", "key": "2 keys"} {
		if got := Plural(2, what); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
