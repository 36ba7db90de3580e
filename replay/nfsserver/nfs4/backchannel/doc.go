// Package backchannel calls NFSv4 clients: CB_NULL, CB_RECALL and CB_GETATTR, on the
// connections that a client has bound to its sessions (RFC 8881, section 2.10.3.1), or,
// for NFSv4.0, on a TCP connection to the address that the client gave (RFC 7530,
// section 16.33).
//
// Nobody waits for a client but those who call it: each Channel has a queue of its own,
// which a goroutine works off while there is something in it. Every call has a timeout,
// and every queue an end.
package backchannel
