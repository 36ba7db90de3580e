package endpoint

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Trace is what an endpoint knows of a call at its end.
type Trace struct {
	Peer     transport.Peer
	XID      uint32
	Backward bool // in the backward direction
	Answered bool // the call was the peer's; otherwise it was ours

	// Of calls that were ours: see transport.Times, and Done, when memory was
	// closed and the caller was told.
	// Of the peer's: Received, Queued when the chunks of the call were there,
	// Replied when the handler gave its reply, Done when it was handed to the
	// provider.
	Received, Queued, Sent, Replied, Done time.Time

	ReadBytes, WriteBytes int // moved by RDMA, by whichever side
	Segments              int // offered by the call
	Err                   error
}

// RemoteError is an RDMA_ERROR that the peer has sent instead of a reply (RFC
// 8166, section 4.5).
type RemoteError struct {
	Code      rpcrdma.ErrorCode
	Low, High uint32 // versions that the peer supports, of ErrVers
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

// counters are those of transport.Stats.
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
