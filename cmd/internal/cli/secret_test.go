package cli

import (
	"strings"
	"testing"
)

// TestNoHome says what can be set if nobody knows where the state of programs is.
func TestNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	if _, err := Secret("tool", "key"); err == nil || !strings.Contains(err.Error(), "set it, or XDG_STATE_HOME") {
		t.Error(err)
	}
}
