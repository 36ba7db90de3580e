// Package endpoint speaks RPC over RDMA version 1 (RFC 8166, with RFC 8167, 8797
// and 8267) over any provider of package verbs: a Requester that sends calls and
// a Responder that answers them, behind the interfaces of package transport. Models
// and dialects that preceded the standard are supported for comparison.
//
// Each connection has one goroutine. It takes completions in batches, hands calls to
// the handler and replies to their callers, and then posts all work that these have
// caused at once. Messages that fit inline are copied into buffers of the connection;
// nothing is allocated for them.
package endpoint
