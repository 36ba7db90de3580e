// Package bench measures NFS over RDMA and over TCP side by side: throughput,
// latency, and the processor time of client and server for each byte, over
// sizes, calls under way, transfer models, credit policies, inline thresholds
// and registration modes; and the synthetic workloads fileop, Postmark and
// IOzone.
//
// What it measures is this program's client and, as a rule, this program's
// server: differences between rows are those of the transport. The files are in
// the server's memory.
package bench
