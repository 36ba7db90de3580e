package transport

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Errors of calls, for errors.Is: what a transport returns may wrap them.
var (
	ErrTimeout      = errors.New("transport: no reply in time")
	ErrDisconnected = errors.New("transport: the connection has ended")
	ErrClosed       = errors.New("transport: closed")
	ErrXID          = errors.New("transport: a call with this XID is outstanding")
	ErrMessage      = errors.New("transport: not an RPC message")
	ErrTooLong      = errors.New("transport: the message is too long")
	ErrLayout       = errors.New("transport: the layout does not fit the message")
	// ErrReplyRoom is an ErrLayout: the call leaves no room for its reply.
	ErrReplyRoom = fmt.Errorf("%w: the reply fits neither inline nor the Reply chunk", ErrLayout)
	ErrBadReply  = errors.New("transport: the reply breaks the rules of the transport")
)

var lastID atomic.Uint64

// NextID returns a number for Peer.ID that is unique within the process.
func NextID() uint64 { return lastID.Add(1) }
