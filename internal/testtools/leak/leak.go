// Package leak finds goroutines that a test leaves behind.
package leak

import (
	"runtime"
	"testing"
	"time"
)

// patience is how long goroutines may take to end: a busy machine must not fail a test.
const patience = time.Minute

// Goroutines counts the goroutines there are. The function it returns waits until there are no more than that, and fails the test
// with their stacks if they stay. It has to wait: a goroutine that nobody waits for any more, since it called Done of a
// sync.WaitGroup or closed a channel, is counted until it has returned.
func Goroutines(t testing.TB) (ended func()) {
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		var now int
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			if now = runtime.NumGoroutine(); now <= before {
				return
			}
			if time.Now().After(end) {
				break
			}
		}
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
	}
}
