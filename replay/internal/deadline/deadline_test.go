package deadline

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSweep: the timer fires for the earliest deadline, sweeps what is due, and
// is armed for the next one, in whatever order the deadlines were given.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		table := map[string]time.Time{
			"c": start.Add(3 * time.Second), "a": start.Add(time.Second), "b": start.Add(2 * time.Second), "never": {},
		}
		fired := make(chan struct{}, 10)
		d := New(func() { fired <- struct{}{} })
		for _, at := range table {
			if !at.IsZero() {
				d.Arm(at)
			}
		}
		var got []string
		var times []time.Duration
		for range 3 {
			<-fired
			Sweep(d, table, time.Now(), func(at time.Time) time.Time { return at }, func(k string, _ time.Time) {
				got = append(got, k)
				delete(table, k)
			})
			times = append(times, time.Since(start))
		}
		if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
			t.Errorf("due: %v, want %v", got, want)
		}
		if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(times, want) {
			t.Errorf("fired after %v, want %v", times, want)
		}
		time.Sleep(time.Hour)
		if len(fired) != 0 {
			t.Error("the timer fired with no deadline left")
		}
	})
}

// TestStop: a stopped timer does not fire, and can be armed again.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan struct{}, 10)
		d := New(func() { fired <- struct{}{} })
		d.Stop() // before anything was armed
		d.Arm(time.Now().Add(time.Second))
		d.Stop()
		time.Sleep(time.Minute)
		if len(fired) != 0 {
			t.Fatal("fired after Stop")
		}
		d.Arm(time.Now().Add(time.Hour))
		time.Sleep(2 * time.Hour)
		if len(fired) != 1 {
			t.Fatalf("fired %d times, want once", len(fired))
		}
	})
}
