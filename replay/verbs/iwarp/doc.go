// Package iwarp is a provider of package verbs that speaks iWARP (RFC 5040, RFC
// 5041, RFC 5044, RFC 6581) over an ordinary TCP socket. It needs neither a
// kernel module nor a privilege, and talks to itself, to Linux's siw and to
// adapters.
//
// Each connection has two goroutines. One reads, places what the peer sends and
// queues Read Responses, whether the user polls or not. The other writes when the
// socket is full; as long as it is not, whoever has something to send writes it
// himself, without waiting.
//
// # Memory
//
// The peer reaches regions of the connection and nothing else, each within its
// bounds and access. Where CRCs are on, a segment is placed after its CRC was
// found right: a wrong STag or offset that TCP's checksum did not notice must not
// change memory that an earlier message has filled. Without CRCs large segments
// are read from the socket right into the region.
package iwarp
