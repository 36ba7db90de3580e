// Package endpoint speaks RPC over RDMA version 1 (RFC 8166, with RFC 8167, 8797
// and 8267) over any provider of package verbs: a Requester that sends calls and
// a Responder that answers them, behind the interfaces of package transport. The
// models and dialects of the designs before the standard are there for
// comparison.
//
// A connection has one goroutine, which takes completions in batches, hands
// calls to the handler and replies to their callers, and posts at once all that
// these have caused. Messages that fit inline are copied into buffers of the
// connection; nothing is allocated for them.
package endpoint
