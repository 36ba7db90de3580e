//go:build race

package iwarp

import "sync/atomic"

// The race detector does not see that what was written to a socket happened
// before it is read from its other end. Package syscall tells it; so do we.
var order atomic.Int64

func orderWrite() { order.Add(1) }
func orderRead()  { order.Load() }
