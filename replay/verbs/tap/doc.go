// Package tap makes packets of what soft providers and RPC transports send and
// receive through sockets, so that a program can capture itself without a
// privilege. The packets are what an adapter could have seen: their lengths,
// sequence numbers and checksums are right. Where the kernel put its packet
// boundaries, and what it repeated, is not known here.
package tap
