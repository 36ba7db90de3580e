package filter

import (
	"errors"
	"strings"
	"testing"
)

// TestForeign: what is suggested for the name of another tool exists, and the name itself does not.
func TestForeign(t *testing.T) {
	for name, meant := range foreign {
		if name != strings.ToLower(name) {
			t.Errorf("%s is not found: names are compared in lower case", name)
		}
		_, err := Compile(name + " == 1")
		if e, ok := errors.AsType[*Error](err); !ok || e.Hint != suggest(meant, 3) {
			t.Errorf("%s: %v", name, err)
		}
		for _, m := range meant {
			if _, err := lookup(m, 0, m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
