package judge

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Reply is the reply to one call.
type Reply struct {
	Op    *plan.Op
	World int // number of the copy of the plan that the call belongs to
	// RPC is the outcome of the RPC layer, empty if the call was executed:
	// "PROG_UNAVAIL".
	RPC string
	// Result is what the server returned. It is not used after Judge.
	Result xdr.Message
	// Data gives the bytes of Result's data. It may be nil if there are none.
	Data Data
	// Issued is when the call was sent, at the earliest, and Replied when its reply came.
	Issued, Replied time.Time
	// Sent says how the call went out, if not as planned.
	Sent verdict.Code
	// Newest says that it was sent with state ids as they were then; it went out more
	// than once.
	Newest bool
	// RootReplaced says that PUTROOTFH went out as PUTFH.
	RootReplaced bool
	// Chunks are the bytes that the reply used of each Write chunk, if the call was
	// laid out as captured; nil otherwise.
	Chunks []uint32
	// LaidOut says that the call was laid out as captured.
	LaidOut bool
}

// Data gives the bytes of a reply's data.
type Data interface {
	Bytes(xdr.Data) []byte
	// Hash is plan.HashData of b, the bytes of d.
	Hash(d xdr.Data, b []byte) string
}

// Judge compares replies with captured ones. It belongs to one goroutine. It keeps
// what later replies are judged by, so that replies are to come in the order in which
// they arrived.
type Judge struct {
	load    *workload.Workload
	level   Level
	cmp     comparison
	reply   *Reply           // that is being compared
	want    workload.Results // captured results, decoded here
	reader  xdr.Reader
	args    workload.Arguments
	sizes   []xdr.Reduced
	worlds  map[int]*history
	moments *moments
	tick    time.Duration
	follow  bool  // what a server must hold
	cuts    *cuts // the calls of which the capture lacks a part
	// doubtful are the objects that may not have been there, by name.
	doubtful map[place1]*plan.Object
	names    []string // that a listing lacks, or has too much
}
