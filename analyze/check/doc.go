// Package check checks what is on the wire against the rules of RPC-over-RDMA: RFC 8166 with RFC 8167, 8267
// and 8797, its predecessor RFC 5666, the known behaviour of Linux, and the few fabric rules that these rely
// on.
//
// A Checker sees the operations, packets and transactions of a decode.Decoder and reports findings. If the
// capture does not allow a rule to be judged, it gives no finding: the rule is counted as not judged, with
// the reason.
package check
