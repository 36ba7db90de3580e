// Package tap builds packets of the data that soft providers and RPC transports send
// and receive through sockets, so that a program can capture its own traffic without
// privileges. The packets are such as an adapter could have seen: their lengths,
// sequence numbers and checksums are right. The kernel's packet boundaries and
// retransmissions are not known here.
package tap
