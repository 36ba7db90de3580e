// Package blame attributes the lost time of each transaction: to recovery from losses, a receiver
// that was not ready, congestion, or the limit of RDMA Reads. A fabric.Recorder knows when
// connections stalled; this package intersects that with the phases of the transactions.
//
//	b := blame.New(fabric.Options{})
//	opt.Watcher, opt.Transactions.Ended = b.Recorder, b.Ended
package blame
