// Package blame says what the time of each transaction was lost to: recovery from
// losses, a receiver that was not ready, congestion, the limit of RDMA Reads. A
// fabric.Recorder knows when connections stalled; here that is laid over the phases of
// the transactions.
//
//	b := blame.New(fabric.Options{})
//	opt.Watcher, opt.Transactions.Ended = b.Recorder, b.Ended
package blame
