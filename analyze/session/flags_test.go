package session

import (
	"maps"
	"testing"
)

// Status flags are counted by name, those without a name by their number.
func TestStatusFlags(t *testing.T) {
	var s session
	for _, flags := range []uint32{0, 0x201, 0x1, 0x80000000} {
		s.status(flags)
	}
	want := map[string]uint64{"SEQ4_STATUS_CB_PATH_DOWN": 2, "SEQ4_STATUS_CB_PATH_DOWN_SESSION": 1, "0x80000000": 1}
	if got := s.statusFlags(); s.replies != 4 || !maps.Equal(got, want) {
		t.Errorf("%v in %d", got, s.replies)
	}
}
