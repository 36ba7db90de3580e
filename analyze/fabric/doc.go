// Package fabric analyses RDMA itself, whatever the layer above: the operations of every
// connection with their latency, the losses and how each was recovered from, and congestion.
//
// A Recorder is an rdma.Watcher. Its memory is bounded: operations leave it as they end, and
// operations that it gives up are counted in the report.
package fabric
