package endpoint

import (
	"math"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
)

// Model says which side moves the data of chunks.
type Model uint8

// Transfer models.
const (
	// ReadWrite is the model of RFC 8166: the Responder reads the chunks of calls
	// and writes those of replies.
	ReadWrite Model = iota
	// ReadRead is the model of the first designs (Callaghan 2003, OpenSolaris
	// 2005): the Responder exposes long results as Read chunks of its reply; the
	// Requester reads them and sends RDMA_DONE.
	ReadRead
)

// Registration says how memory for chunks is opened to the peer.
type Registration uint8

// Registration modes, after those of the Linux client (Talpey 2008).
const (
	// PerCall registers the memory of each call and closes it before the call
	// completes, as FRWR does.
	PerCall Registration = iota
	// Inline opens no memory: there are no chunks, and every message has to fit
	// into a Send.
	Inline
	// Pool copies data through buffers that stay registered for the life of the
	// connection.
	Pool
	// Persistent registers memory from Alloc once for each connection and leaves it
	// open to the peer between calls. Other memory is copied as by Pool.
	Persistent
	// Windows registers as Persistent does, but shows the peer only memory windows,
	// which are bound for each segment of a call and closed at its end.
	Windows
)

// Choice is how a Requester chooses chunks for a call without a Layout.
type Choice uint8

// Choices.
const (
	// ChooseLinux offers chunks only if a message may not fit inline: a Write
	// chunk for each of Results, or else a Reply chunk; a Read chunk for each of
	// Items, or else one for the whole call, at position zero.
	ChooseLinux Choice = iota
	// ChooseMinimum puts every item of at least MinChunk bytes into a chunk,
	// as Callaghan's prototype and OpenSolaris did.
	ChooseMinimum
)

// Policy says how credits are asked for and granted.
type Policy uint8

// Credit policies.
const (
	// CreditsLinux: the Requester always asks for Credits; the Responder always
	// grants Credits.
	CreditsLinux Policy = iota
	// CreditsFixed: as CreditsLinux, but the Responder never grants more than the
	// Requester asked for.
	CreditsFixed
	// CreditsDynamic: the policies of OSU-CISRC-4/06-TR43, figures 10 and 11. See
	// Dynamic.
	CreditsDynamic
)

// Dynamic holds the parameters of CreditsDynamic.
type Dynamic struct {
	// Threshold, Minimum and ClientFactor are for the Requester. If the credits it
	// holds, minus its calls in flight, are at least Threshold, it asks for
	// Minimum; otherwise for Minimum + calls in flight × ClientFactor. Defaults 8,
	// 16, 2.
	Threshold, Minimum uint32
	ClientFactor       float64
	// Buffers and ServerFactor are for the Responder. It grants the receives that
	// are posted, if no more was asked for; what was asked for, if that is at most
	// the average, Buffers ÷ connections; and otherwise the average + (asked −
	// average) × ServerFactor. Defaults 4096, 0.5.
	Buffers      uint32
	ServerFactor float64
}

// Options of a Requester and of a Responder. The zero Options behave like the
// client and the server of Linux. Options that only one of the two uses say so.
type Options struct {
	// Messages.

	// InlineSend and InlineReceive are the sizes in bytes of the largest Send and
	// the largest receive, in steps of 1024 (RFC 8797). Default 4096.
	InlineSend, InlineReceive int
	// MaxMessage is the size in bytes of the longest message that is accepted in
	// chunks. Default 4 MiB.
	MaxMessage int
	// NoPrivateData omits the private data of RFC 8797. The peer then sends at
	// most 1024 bytes inline.
	NoPrivateData bool
	// NoRemoteInvalidate does not let the peer invalidate our handles.
	NoRemoteInvalidate bool

	// Credits.

	Policy Policy
	// Credits are asked for by a Requester (default 128) or granted by a
	// Responder (default 64).
	Credits uint32
	// MaxCredits bounds what CreditsDynamic asks for and grants. Receives are
	// reserved for that many. Default 4 × Credits.
	MaxCredits uint32
	Dynamic    Dynamic
	// BackwardCredits are granted for calls in the backward direction (RFC
	// 8167). Default 16.
	BackwardCredits uint32

	// Version and transfer model.

	// Dialect selects version 0, which preceded the standard, in one of its
	// dialects. A Requester then speaks version 0; a Responder understands it and
	// version 1. The zero Dialect is version 1.
	Dialect rpcrdma.Dialect
	Model   Model
	// DoneTimeout is how long a Responder holds a reply of ReadRead until it
	// receives RDMA_DONE. Default 30 s.
	DoneTimeout time.Duration

	// Chunks.

	Registration Registration
	// SegmentSize is the size in bytes of the largest segment that a Requester
	// registers. Default 1 MiB. Linux on Soft-RoCE uses 128 KiB.
	SegmentSize int
	// MaxSegments bounds the segments of a chunk, offered or accepted. Default
	// 260, enough for 1 MiB in pages.
	MaxSegments int
	Choice      Choice
	// MinChunk is the size in bytes of the smallest item that ChooseMinimum puts
	// into a chunk of its own (RDMA_MINCHUNK). Default 1024.
	MinChunk int
	// LongReply is the size in bytes of the smallest Reply chunk that is offered
	// (LONG_REPLY_LEN was 64 KiB). Default: as small as the reply allows.
	LongReply int
	// ReplyChunkAlways makes a Responder use every Reply chunk that it is offered,
	// as Linux does, even for a reply that fits inline.
	ReplyChunkAlways bool
	// OperationSize is the size in bytes of the largest RDMA Read and Write.
	// Default: a whole segment. Linux on Soft-RoCE uses 20480.
	OperationSize int
	// AnyOffset leaves the addresses of regions to the provider. Otherwise their
	// upper half is the XID, as on Linux, if the provider supports that.
	AnyOffset bool
	// Unmarked leaves what was in the memory that a Responder may write. Otherwise it is overwritten before each call, since a
	// Responder that says it has written data, and has not, would seem to return those of an earlier call.
	Unmarked bool

	// Queues of the connection.

	// ReadDepth is the number of RDMA Reads in flight to ask for, in each
	// direction. Default 16.
	ReadDepth int
	// SendDepth is the depth of the send queue. Default 256.
	SendDepth int
	// RetryCount and RNRRetryCount are parameters of the connection. Default 6
	// and 0, as xprtrdma.
	RetryCount, RNRRetryCount uint8

	// Limits of a Responder.

	// MaxPulled bounds the bytes of calls that are held for one connection; the
	// chunks of further calls are read when there is room. Default 64 MiB.
	MaxPulled int
	// MaxConnections bounds the number of connections. A new one beyond it evicts
	// the longest idle connection of the address that has the most connections,
	// or is refused. Default 4096.
	MaxConnections int
	// Newcomers bounds the number of connections that have not sent a call yet. A
	// new one beyond it evicts another, of the address that has the most.
	// NewcomerTime is how long a connection may take until its first call.
	// Defaults 1024 and 30 s.
	Newcomers    int
	NewcomerTime time.Duration
	// PeerTimeout is how long a peer may make no progress with RDMA operations
	// and Sends that wait for it. Default 30 s.
	PeerTimeout time.Duration
	// Budget bounds what all connections hold together, with those of other
	// servers that share the Budget. Default: a Budget of its own, of
	// budget.DefaultBytes.
	Budget *budget.Budget

	// Time, and reconnecting.

	// Timeout applies to calls that have none of their own. Default 60 s.
	Timeout time.Duration
	// DialTimeout bounds one attempt to connect, and an accept. Default 10 s.
	DialTimeout time.Duration
	// Reconnect lets a Requester connect again after a loss and retransmit all
	// outstanding calls, with the same XIDs. Without it these fail with
	// transport.ErrDisconnected.
	Reconnect bool
	// BackoffMin and BackoffMax bound the time between attempts to connect, which
	// doubles each time. Default 100 ms and 30 s.
	BackoffMin, BackoffMax time.Duration

	// Trace, if set, is called at the end of each call, by goroutines of the
	// connection. The Trace is valid during the call of the function.
	Trace func(*Trace)
}

// Limits of what Options can ask for.
const (
	minInline   = rdma.DefaultInlineThreshold
	maxSegments = 1 << 12
	maxCredits  = 1 << 14 // the limit of the slot table of Linux
	pageSize    = 4096
)

func (o Options) withDefaults(responder bool) Options {
	num := func(v *int, d, lo, hi int) {
		if *v <= 0 {
			*v = d
		}
		*v = min(max(*v, lo), hi)
	}
	word := func(v *uint32, d uint32) {
		if *v == 0 {
			*v = d
		}
	}
	dur := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	num(&o.InlineSend, 4096, minInline, rdma.MaxInlineThreshold)
	num(&o.InlineReceive, 4096, minInline, rdma.MaxInlineThreshold)
	if o.NoPrivateData {
		o.InlineSend, o.InlineReceive = min(o.InlineSend, minInline), max(o.InlineReceive, minInline)
	}
	if responder {
		word(&o.Credits, 64)
	} else {
		word(&o.Credits, 128)
	}
	o.Credits = min(o.Credits, maxCredits)
	if o.Policy != CreditsDynamic {
		o.MaxCredits = o.Credits
	}
	word(&o.MaxCredits, 4*o.Credits)
	o.MaxCredits = min(max(o.MaxCredits, o.Credits), maxCredits)
	word(&o.BackwardCredits, 16)
	o.BackwardCredits = min(o.BackwardCredits, maxCredits)
	word(&o.Dynamic.Threshold, 8)
	word(&o.Dynamic.Minimum, 16)
	word(&o.Dynamic.Buffers, 4096)
	if o.Dynamic.ClientFactor <= 0 {
		o.Dynamic.ClientFactor = 2
	}
	if o.Dynamic.ServerFactor <= 0 {
		o.Dynamic.ServerFactor = 0.5
	}
	if o.Dialect != rpcrdma.DialectNone && !responder {
		o.Model = ReadRead // version 0 has no other model
	}
	dur(&o.DoneTimeout, 30*time.Second)
	num(&o.MaxMessage, 4<<20, pageSize, 1<<30)
	num(&o.MaxPulled, 64<<20, 1, math.MaxInt)
	num(&o.SegmentSize, 1<<20, 1, 1<<30)
	num(&o.MaxSegments, 260, 1, maxSegments)
	num(&o.MinChunk, 1024, 1, 1<<30)
	num(&o.OperationSize, 1<<30, 1, 1<<30)
	num(&o.MaxConnections, 4096, 1, 1<<20)
	num(&o.Newcomers, 1024, 1, 1<<20)
	dur(&o.NewcomerTime, 30*time.Second)
	dur(&o.PeerTimeout, 30*time.Second)
	num(&o.ReadDepth, 16, 1, 255)
	num(&o.SendDepth, 256, 8, 1<<16)
	if o.RetryCount == 0 {
		o.RetryCount = 6
	}
	dur(&o.Timeout, time.Minute)
	dur(&o.BackoffMin, 100*time.Millisecond)
	dur(&o.BackoffMax, 30*time.Second)
	dur(&o.DialTimeout, 10*time.Second)
	o.BackoffMax = max(o.BackoffMax, o.BackoffMin)
	return o
}

// private returns the private data of RFC 8797 that announces these Options.
func (o *Options) private(caps remoteCaps) []byte {
	if o.NoPrivateData {
		return nil
	}
	p := o.own(caps)
	return p.Append(nil)
}

// own describes this side in the terms of RFC 8797.
func (o *Options) own(caps remoteCaps) rdma.PrivateData {
	return rdma.PrivateData{
		Present: !o.NoPrivateData, Version: 1,
		RemoteInvalidate: caps.invalidate && !o.NoRemoteInvalidate && (o.Registration == PerCall || o.Registration == Windows),
		SendSize:         uint32(o.InlineSend) &^ 1023,
		ReceiveSize:      uint32(o.InlineReceive) &^ 1023,
	}
}

// remoteCaps are the capabilities of the provider that matter to the peer.
type remoteCaps struct{ invalidate bool }

// version is the version of the headers that a Requester sends.
func (o *Options) version() uint32 {
	if o.Dialect != rpcrdma.DialectNone {
		return rpcrdma.Version0
	}
	return rpcrdma.Version1
}
