package busy

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWait has waits of some lengths: only after a short one is the next one worth asking again, and never for longer
// than the limit.
func TestWait(t *testing.T) {
	if alone {
		t.Log("with one processor nobody asks again")
	}
	synctest.Test(t, func(t *testing.T) {
		var w Wait
		for i, c := range []struct {
			length time.Duration
			again  bool // at its start
		}{
			{time.Second, false}, // nothing is known of the peer
			{0, false},
			{Limit - 1, true},
			{Limit, true},
			{0, false},
			{time.Second, true},
			{Limit / 2, false},
		} {
			w.Begin()
			if got := w.Again(); got != (c.again && !alone) {
				t.Errorf("wait %d: again %v", i, got)
			}
			time.Sleep(c.length)
			if got := w.Again(); got != (c.again && c.length < Limit && !alone) {
				t.Errorf("wait %d: again %v at its end", i, got)
			}
			w.End()
		}
	})
}
