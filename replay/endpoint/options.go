package endpoint

import (
	"math"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
)

// Model says who moves the data of chunks.
type Model uint8

// Transfer models.
const (
	// ReadWrite is that of RFC 8166: the Responder Reads the chunks of calls
	// and Writes those of replies.
	ReadWrite Model = iota
	// ReadRead is that of the first designs (Callaghan 2003, OpenSolaris
	// 2005): the Responder exposes long results as Read chunks of its reply,
	// the Requester Reads them and says RDMA_DONE.
	ReadRead
)

// Registration says how memory for chunks is opened to the peer.
type Registration uint8

// Registration modes, after those of the Linux client (Talpey 2008).
const (
	// PerCall registers the memory of each call and closes it before the call
	// is complete, as FRWR does.
	PerCall Registration = iota
	// Inline opens no memory: there are no chunks, and messages have to fit
	// into a Send.
	Inline
	// Pool copies through buffers that are registered once for a connection.
	Pool
	// Persistent registers what Alloc returned once for a connection, and
	// leaves it open to the peer between calls. Other memory goes through the
	// buffers of Pool.
	Persistent
	// Windows registers as Persistent does, but tells the peer of windows only
	// that are bound for each segment of a call and closed at its end.
	Windows
)

// Choice is the way in which a Requester picks chunks for a call without a
// Layout.
type Choice uint8

// Choices.
const (
	// ChooseLinux offers a chunk only if a message may not fit inline: one
	// Write chunk for each of Results, or else a Reply chunk; a Read chunk for
	// each of Items, or else the whole call at position zero.
	ChooseLinux Choice = iota
	// ChooseMinimum puts every item of at least MinChunk bytes into a chunk,
	// as Callaghan's prototype and OpenSolaris did.
	ChooseMinimum
)

// Policy is how credits are asked for and granted.
type Policy uint8

// Credit policies.
const (
	// CreditsLinux: the Requester asks for Credits, always; the Responder
	// grants Credits, whatever was asked.
	CreditsLinux Policy = iota
	// CreditsFixed: as CreditsLinux, but the Responder grants no more than was
	// asked for.
	CreditsFixed
	// CreditsDynamic are the policies of OSU-CISRC-4/06-TR43, figures 10 and
	// 11. See Dynamic.
	CreditsDynamic
)

// Dynamic holds the numbers of CreditsDynamic.
type Dynamic struct {
	// Threshold, Minimum and ClientFactor are the Requester's: if credits held
	// less calls in flight are at least Threshold it asks for Minimum, else
	// for Minimum + in flight × ClientFactor. Defaults 8, 16, 2.
	Threshold, Minimum uint32
	ClientFactor       float64
	// Buffers and ServerFactor are the Responder's. It grants what is posted
	// if no more was asked for; else what was asked for, if that is at most
	// Buffers ÷ connections; else that average + (asked − average) ×
	// ServerFactor. Defaults 4096, 0.5.
	Buffers      uint32
	ServerFactor float64
}

// Options of a Requester and of a Responder. The zero Options behave like the
// client and the server of Linux.
type Options struct {
	// InlineSend and InlineReceive are the largest Send and the largest
	// receive in bytes, in steps of 1024 (RFC 8797). Default 4096.
	InlineSend, InlineReceive int
	// NoPrivateData leaves RFC 8797 out: the peer will then send 1024 bytes
	// at most.
	NoPrivateData bool
	// NoRemoteInvalidate does not let the peer invalidate our handles.
	NoRemoteInvalidate bool

	Policy Policy
	// Credits are asked for by a Requester (default 128) or granted by a
	// Responder (default 64).
	Credits uint32
	// MaxCredits bounds what CreditsDynamic asks and grants: receives for so
	// many are reserved. Default 4 × Credits.
	MaxCredits uint32
	Dynamic    Dynamic
	// BackwardCredits are granted for calls in the backward direction (RFC
	// 8167). Default 16.
	BackwardCredits uint32

	// Version is rpcrdma.Version1 for 0, or the pre-standard version with
	// Dialect set. A Requester speaks it; a Responder with Dialect set
	// understands both.
	Dialect rpcrdma.Dialect
	Model   Model
	// DoneTimeout is how long a Responder holds a reply of ReadRead for the
	// Requester's RDMA_DONE. Default 30 s.
	DoneTimeout time.Duration

	Registration Registration
	// SegmentSize is the largest segment in bytes that a Requester registers;
	// default 1 MiB. Linux has 128 KiB on Soft-RoCE.
	SegmentSize int
	// MaxSegments bounds the segments of a chunk that is offered or accepted.
	// Default 260, which is enough for 1 MiB in pages.
	MaxSegments int
	Choice      Choice
	// MinChunk is the smallest item in bytes that goes into a chunk of its own
	// under ChooseMinimum (RDMA_MINCHUNK). Default 1024.
	MinChunk int
	// LongReply is the smallest Reply chunk in bytes that is offered
	// (LONG_REPLY_LEN was 64 KiB). Default: no more than is needed.
	LongReply int
	// ReplyChunkAlways makes a Responder use each Reply chunk that it is
	// offered, as Linux does, and not only if the reply is too long.
	ReplyChunkAlways bool
	// OperationSize is the largest RDMA Read and Write in bytes. Default: a
	// whole segment. Linux has 20480 on Soft-RoCE.
	OperationSize int
	// AnyOffset leaves the addresses of regions to the provider. Otherwise
	// their upper half is the XID, as Linux has it, where the provider can.
	AnyOffset bool

	// MaxMessage is the longest message in bytes that is received in chunks.
	// Default 4 MiB.
	MaxMessage int
	// MaxPulled bounds the bytes of calls that a Responder holds for one
	// connection; the chunks of further calls are read when there is room.
	// Default 64 MiB.
	MaxPulled int
	// MaxConnections bounds the connections of a Responder. One more ends another,
	// of the address that has the most the one that has been idle for longest, or
	// is refused. Default 4096.
	MaxConnections int
	// Newcomers bounds the connections of a Responder that have not sent a call
	// yet, and NewcomerTime is how long they may take for it. One more ends another,
	// of the address that has the most. Defaults 1024 and 30 s.
	Newcomers    int
	NewcomerTime time.Duration
	// PeerTimeout is how long a Responder waits for a peer that takes nothing of
	// what is written to it and gives nothing of what is read from it. Default 30 s.
	PeerTimeout time.Duration
	// Budget is what all connections of a Responder may hold together, and those of
	// other servers that it is shared with. Default: one of its own, of
	// budget.DefaultBytes.
	Budget *budget.Budget

	// ReadDepth is the number of RDMA Reads in flight that is asked for, each
	// way. Default 16.
	ReadDepth int
	// SendDepth is that of the send queue. Default 256.
	SendDepth int
	// RetryCount and RNRRetryCount are those of the connection. Default 6 and
	// 0, as xprtrdma.
	RetryCount, RNRRetryCount uint8

	// Timeout of calls that have none of their own. Default 60 s.
	Timeout time.Duration
	// Reconnect lets a Requester connect again after a loss and send all
	// outstanding calls again, with their XIDs. Without it they fail with
	// transport.ErrDisconnected.
	Reconnect bool
	// BackoffMin and BackoffMax bound the time between attempts to connect,
	// which doubles. Default 100 ms and 30 s.
	BackoffMin, BackoffMax time.Duration
	// DialTimeout bounds one attempt to connect, and an accept. Default 10 s.
	DialTimeout time.Duration

	// Trace is called at the end of each call, from goroutines of the
	// connection. The Trace is valid during the call.
	Trace func(*Trace)
}

// Limits of what Options can ask for.
const (
	minInline   = rdma.DefaultInlineThreshold
	maxSegments = 1 << 12
	maxCredits  = 1 << 14 // as Linux's slot table
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
		o.Model = ReadRead // there is no other in version 0
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

// private is the message of RFC 8797 that these Options send.
func (o *Options) private(caps remoteCaps) []byte {
	if o.NoPrivateData {
		return nil
	}
	p := o.own(caps)
	return p.Append(nil)
}

// own is what this side is, in the terms of RFC 8797.
func (o *Options) own(caps remoteCaps) rdma.PrivateData {
	return rdma.PrivateData{
		Present: !o.NoPrivateData, Version: 1,
		RemoteInvalidate: caps.invalidate && !o.NoRemoteInvalidate && (o.Registration == PerCall || o.Registration == Windows),
		SendSize:         uint32(o.InlineSend) &^ 1023,
		ReceiveSize:      uint32(o.InlineReceive) &^ 1023,
	}
}

// remoteCaps are what the peer may be told about the provider.
type remoteCaps struct{ invalidate bool }

// version is that of the header that a Requester sends.
func (o *Options) version() uint32 {
	if o.Dialect != rpcrdma.DialectNone {
		return rpcrdma.Version0
	}
	return rpcrdma.Version1
}
