package spent

import (
	"testing"
	"time"
)

// TestTime works until time has passed, and then sleeps, which is no work.
func TestTime(t *testing.T) {
	sum, start := 0, Time()
	for Time()-start < 10*time.Millisecond {
		for i := range 1 << 16 {
			sum += i
		}
	}
	if sum == 0 {
		t.Error("no work was done")
	}
	if _, ok := processors(); !ok {
		return
	}
	start = Time()
	time.Sleep(200 * time.Millisecond)
	if d := Time() - start; d > 150*time.Millisecond {
		t.Errorf("a sleep of 200 ms has taken %v of a processor", d)
	}
}
