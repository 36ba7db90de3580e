// Package backchannel calls NFSv4 clients: CB_NULL, CB_RECALL and CB_GETATTR, on the
// connections that a client has bound to its sessions (RFC 8881, section 2.10.3.1), or,
// for NFSv4.0, on a TCP connection to the address that the client gave (RFC 7530,
// section 16.33).
//
// Only callers of a client wait for it: each Channel has its own queue, served by a goroutine
// while there is something in it. Every call has a timeout, and every queue a limit.
package backchannel
