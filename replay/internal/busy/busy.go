// Package busy tells how long to ask a socket again and again before sleeping until it has something.
//
// Waking a thread that sleeps takes longer than the next data of a busy peer, and processor time of the one that wakes
// it. So whoever waits for such a peer does better to ask again for a while, as consumers of RDMA do with their
// completion queues. Whoever waits for an idle one does not: then the last wait was long, and no time is lost.
package busy

import (
	"runtime"
	"time"
)

// Limit is how long to ask again before sleeping. A wait that took longer was for an idle peer.
const Limit = 100 * time.Microsecond

// With one processor, whoever asks again keeps the peer from answering.
var alone = runtime.NumCPU() == 1

// Wait decides for one goroutine that waits. The zero value is ready for use.
type Wait struct {
	began time.Time
	short bool // the last wait was
}

// Begin starts a wait.
func (w *Wait) Begin() { w.began = time.Now() }

// Again gives way to other goroutines, and reports whether to ask again. If not, the caller should sleep.
func (w *Wait) Again() bool {
	if !w.short || alone || time.Since(w.began) >= Limit {
		return false
	}
	runtime.Gosched()
	return true
}

// End ends the wait: there is something, or there never will be.
func (w *Wait) End() { w.short = time.Since(w.began) < Limit }
