// Package iwarp is a provider of package verbs that speaks iWARP (RFC 5040, RFC
// 5041, RFC 5044, RFC 6581) over an ordinary TCP socket. It needs neither a
// kernel module nor privileges, and interoperates with itself, with the siw driver of
// Linux and with adapters.
//
// Each connection has two goroutines. One reads, places data of the peer and queues Read
// Responses, whether or not the user polls. The other writes while the socket is full;
// otherwise the goroutine that has something to send writes it itself, without waiting.
//
// # Memory
//
// The peer can reach only regions of the connection, each within its bounds and access
// rights. A segment is placed when it is complete and, with CRCs, found correct: a damaged
// STag or offset that the TCP checksum did not detect must not change memory that an
// earlier message has filled.
package iwarp
