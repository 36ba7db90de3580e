package endpoint

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Trace describes a call at its end.
type Trace struct {
	Peer     transport.Peer
	XID      uint32
	Backward bool // in the backward direction
	Answered bool // the peer sent the call and we answered; otherwise we sent it

	// For our calls: as in transport.Times; Done is when memory was closed and the
	// caller was told.
	// For calls of the peer: Received; Queued, when the chunks of the call had
	// arrived; Replied, when the handler gave its reply; Done, when the reply was
	// handed to the provider.
	Received, Queued, Sent, Replied, Done time.Time

	ReadBytes, WriteBytes int // moved by RDMA, by either side
	Segments              int // that the call offered
	Err                   error
}

// RemoteError is an RDMA_ERROR that the peer has sent instead of a reply (RFC
// 8166, section 4.5).
type RemoteError struct {
	Code      rpcrdma.ErrorCode
	Low, High uint32 // ErrVers: versions that the peer supports
}

func (e *RemoteError) Error() string {
	if e.Code == rpcrdma.ErrVers {
		return fmt.Sprintf("endpoint: the peer answered RDMA_ERROR: ERR_VERS, it supports versions %d to %d", e.Low, e.High)
	}
	if name := e.Code.Name(rpcrdma.Version1); name != "" {
		return "endpoint: the peer answered RDMA_ERROR: " + name
	}
	return fmt.Sprintf("endpoint: the peer answered RDMA_ERROR: %d", e.Code)
}

// counters are the counts of transport.Stats.
type counters struct {
	calls, replies, errors, sends, receives    atomic.Uint64
	reads, writes, readBytes, writeBytes, regs atomic.Uint64
	reconnects, creditWaits, dropped           atomic.Uint64
}

func (c *counters) stats() transport.Stats {
	return transport.Stats{
		Calls: c.calls.Load(), Replies: c.replies.Load(), Errors: c.errors.Load(),
		Sends: c.sends.Load(), Receives: c.receives.Load(),
		Reads: c.reads.Load(), Writes: c.writes.Load(),
		ReadBytes: c.readBytes.Load(), WriteBytes: c.writeBytes.Load(),
		Registrations: c.regs.Load(), Reconnects: c.reconnects.Load(), CreditWaits: c.creditWaits.Load(),
	}
}
