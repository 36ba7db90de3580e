package cli

import (
	"io"
	"testing"
)

func TestColor(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	for _, c := range []struct {
		when string
		want bool
	}{{"always", true}, {"never", false}, {"auto", false}} {
		if got, err := Color(c.when, io.Discard); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.when, got, err)
		}
	}
	if _, err := Color("sometimes", io.Discard); ExitCode(err) != ExitUsage {
		t.Errorf("sometimes: %v", err)
	}
}
