package leak

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// record is a test that keeps what it is told.
type record struct {
	testing.TB
	said []string
}

func (*record) Helper() {}

func (r *record) Errorf(_ string, args ...any) { r.said = append(r.said, string(args[2].([]byte))) }

// TestGoroutines tells a goroutine that ends late from one that stays.
func TestGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		ended := Goroutines(&r)
		go time.Sleep(patience / 2)
		if ended(); r.said != nil {
			t.Errorf("one that ends: %q", r.said)
		}
		stay := make(chan struct{})
		go func() { <-stay }()
		if ended(); len(r.said) != 1 || !strings.Contains(r.said[0], "leak.TestGoroutines") {
			t.Errorf("one that stays: %q", r.said)
		}
		close(stay)
	})
}
