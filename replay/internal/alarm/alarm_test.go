package alarm_test

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/alarm"
)

// TestAlarm: an alarm goes off once for each setting, and not before its time.
func TestAlarm(t *testing.T) {
	a, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Stop()
	for _, d := range []time.Duration{-1, 0, 200 * time.Microsecond, 3 * time.Millisecond} {
		start := time.Now()
		a.Set(time.Hour)
		a.Set(d)
		<-a.C
		if took := time.Since(start); took < d {
			t.Errorf("an alarm of %s went off after %s", d, took)
		}
	}
	select {
	case <-a.C:
		t.Error("it went off once more")
	default:
	}
}
