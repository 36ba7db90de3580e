// Package blame attributes the lost time of each transaction: to recovery from losses, a receiver
// that was not ready, congestion, or the limit of RDMA Reads. A fabric.Recorder knows when
// connections stalled; this package intersects that with the phases of the transactions.
//
//	b := blame.New(fabric.Options{})
//	opt.Observe(b.Recorder.Observer()); opt.Transactions.Ended = b.Ended
package blame
