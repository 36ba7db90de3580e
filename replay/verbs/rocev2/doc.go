// Package rocev2 is a verbs provider in software: RoCEv2 (IBTA volume 1, annex
// A17) over one ordinary UDP socket for each local address. It needs no
// privileges, no kernel module and no adapter, and interoperates with adapters and with
// the rxe driver of the Linux kernel in both roles.
//
//	Conn ── requester ─┐                  ┌─ requester ── Conn
//	     ── responder ─┤ socket  ──UDP──  ├─ responder
//	cm   ── QP 1      ─┘  4791      4791  └─ QP 1      ── cm
//
// Connection management (cm) follows chapter 12 of the IBTA specification, with the
// private data of rdma_cm (annex A11). The transport is RC: go-back-N with packet
// sequence numbers, acknowledgements, receiver-not-ready timers and replay of
// RDMA Reads.
//
// For each socket, one goroutine reads and handles datagrams. The goroutine that posts a
// request sends it. The lock of the connection is held meanwhile, including the system
// call, so memory is in use exactly while the lock is held.
//
// The ICRC covers the IPv4 identification, which a UDP socket can neither set nor read.
// An unconnected socket that never fragments sends 0; with segmentation offload
// (UDP_SEGMENT) the kernel counts 0, 1, 2 … within each call. The identification of a
// received packet is computed from its ICRC; see ICRCCheck.
package rocev2
