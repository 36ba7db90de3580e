// Package rocev2 is a verbs provider in software: RoCEv2 (IBTA volume 1, annex
// A17) over one ordinary UDP socket for each local address. It needs no
// privilege, no kernel module and no adapter, and speaks to adapters and to
// the Linux kernel's rxe in both roles.
//
//	Conn ── requester ─┐                  ┌─ requester ── Conn
//	     ── responder ─┤ socket  ──UDP──  ├─ responder
//	cm   ── QP 1      ─┘  4791      4791  └─ QP 1      ── cm
//
// Connection management (cm) is that of the IBTA's chapter 12 with the private
// data of rdma_cm (annex A11). The transport is RC: go-back-N with packet
// sequence numbers, acknowledgements, receiver-not-ready timers and replay of
// RDMA Reads.
//
// One goroutine for each socket reads datagrams and does what they ask for.
// Requests go out on the goroutine that posts them. The lock of a connection is
// held meanwhile, system call included, so that memory is in use exactly as
// long as the lock is.
//
// The ICRC covers the IPv4 identification, which a UDP socket can neither set
// nor see. An unconnected socket that never fragments sends 0; with
// segmentation offload (UDP_SEGMENT) the kernel counts 0, 1, 2 … within each
// call. Of a packet received, the identification is computed from the ICRC, see
// ICRCCheck.
package rocev2
