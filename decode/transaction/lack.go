package transaction

import "github.com/rpcrdma/toolkit/decode/rpcrdma"

// Lack is why the time between call and reply cannot be divided into phases: the capture does not have what would tell.
type Lack uint8

// Reasons.
const (
	LackNothing Lack = iota
	LackLists        // the transport header of the call ends before its chunk lists do
	LackReads        // the call has Read chunks, and no RDMA Read for it was seen
	LackWrites       // the reply has Write chunks or a Reply chunk that were used, and no RDMA Write for it was seen
)

// Lacks says what is missing to divide the time of a transaction into phases. The chunk lists of the call say which RDMA Reads and Writes
// are for it (RFC 8166, section 3.4).
func (t *Transaction) Lacks() Lack {
	call, reply := &t.Call.Header, &t.Reply.Header
	switch {
	case !t.Call.Transport:
	case call.Cut:
		return LackLists
	case call.Plain() || t.Reply.Transport && reply.Type == rpcrdma.TypeError:
	case !t.Times.LastRead.Seen() && (offers(call.Reads) || offers(call.Call)):
		return LackReads
	}
	if t.Reply.Transport && !reply.Plain() && !t.Times.FirstPush.Seen() && uses(reply) {
		return LackWrites
	}
	return LackNothing
}

// offers reports whether a list has anything to read.
func offers(list []rpcrdma.ReadSegment) bool {
	for i := range list {
		if list[i].Length > 0 {
			return true
		}
	}
	return false
}

// uses reports whether a reply says that something was written.
func uses(h *rpcrdma.Header) bool {
	for _, c := range h.Writes {
		for i := range c {
			if c[i].Length > 0 {
				return true
			}
		}
	}
	for i := range h.Reply {
		if h.Reply[i].Length > 0 {
			return true
		}
	}
	return false
}
