//go:build race

package iwarp

import "sync/atomic"

// The race detector does not know that a write to a socket happens before the read at its
// other end. Package syscall tells it; so do we.
var order atomic.Int64

func orderWrite() { order.Add(1) }
func orderRead()  { order.Load() }
