// Package fabric tells what RDMA itself does and suffers, whatever the layer
// above: the operations of every connection with their latency, the losses and
// how each was recovered from, and congestion.
//
// A Recorder is an rdma.Watcher. It holds bounded memory: operations leave it as
// they end, and what it gives up is counted in the report.
package fabric
