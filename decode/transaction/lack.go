package transaction

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// Lack is why the time between call and reply cannot be divided into phases: the capture does not have what would tell.
type Lack uint8

// Reasons.
const (
	LackNothing Lack = iota
	LackLists        // the transport header of the call ends before its chunk lists do
	LackReads        // the call has Read chunks, and was executed, and no RDMA Read for it was seen
	LackWrites       // the reply has Write chunks or a Reply chunk that were used, and no RDMA Write for it was seen
	LackPackets      // a kernel recorded the transaction: there are no packets
)

// Lacks says what is missing to divide the time of a transaction into phases. The chunk lists of the call say which RDMA Reads and Writes
// are for it (RFC 8166, section 3.4).
func (t *Transaction) Lacks() Lack {
	call, reply := &t.Call.Header, &t.Reply.Header
	switch {
	case t.Kernel != nil:
		return LackPackets
	case !t.Call.Transport:
	case call.Cut:
		return LackLists
	case call.Plain() || t.Times.LastRead.Seen() || !offers(call.Reads) && !offers(call.Call):
	case !t.Reply.refuses():
		return LackReads
	}
	if t.Reply.Transport && !reply.Plain() && !t.Times.FirstPush.Seen() && uses(reply) {
		return LackWrites
	}
	return LackNothing
}

// refuses reports whether a reply says that the call was not executed: by RDMA_ERROR, or in its RPC header (RFC 5531, section 9). A
// status that is not defined does not say that.
func (m *Message) refuses() bool {
	if m.Transport && m.Header.Type == rpcrdma.TypeError {
		return true
	}
	b := m.Payload
	if len(b) < 12 {
		return false
	}
	switch binary.BigEndian.Uint32(b[8:]) {
	case denied:
		return len(b) < 16 || binary.BigEndian.Uint32(b[12:]) <= authError
	case accepted:
		if len(b) < 20 {
			return false
		}
		size := binary.BigEndian.Uint32(b[16:])
		at := 20 + int(min(size, longestVerifier)+3)&^3
		if size > longestVerifier || at+4 > len(b) {
			return false
		}
		status := binary.BigEndian.Uint32(b[at:])
		return status != succeeded && status <= systemError
	}
	return false
}

// Values of reply_stat, and the bounds of reject_stat, of accept_stat and of the size of a verifier in bytes.
const (
	accepted        = 0
	denied          = 1
	authError       = 1
	succeeded       = 0
	systemError     = 5
	longestVerifier = 400
)

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
