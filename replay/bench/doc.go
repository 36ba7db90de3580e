// Package bench measures NFS over RDMA and over TCP side by side: throughput,
// latency, and the processor time of client and server for each byte, over
// sizes, calls in flight, transfer models, credit policies, inline thresholds
// and registration modes; and the synthetic workloads fileop, Postmark and
// IOzone.
//
// What it measures is this program's client and, as a rule, this program's
// server: rows differ by the transport only. The files are in
// the server's memory.
package bench
