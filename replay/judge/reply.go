package judge

import (
	"time"

	"github.com/rpcrdma/toolkit/analyze/invariant"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Reply is the reply to one call.
type Reply struct {
	Op    *plan.Op
	Clone int // number of the copy of the plan that the call belongs to
	// RPC is the outcome of the RPC layer, empty if the call was executed:
	// "PROG_UNAVAIL".
	RPC string
	// Args are the arguments of the call as it was sent. They are not used after Judge.
	Args xdr.Message
	// Result is what the server returned. It is not used after Judge.
	Result xdr.Message
	// Data returns the bytes of Result's data. It may be nil if there are none.
	Data Data
	// Issued is when the call was sent, at the earliest, and Replied when its reply came.
	Issued, Replied time.Time
	// Sent describes how the call was sent, if not as planned.
	Sent verdict.Code
	// Again says that it was sent more than once.
	Again bool
	// Newest says that it was sent with the state ids of that time; it was sent more than once.
	Newest bool
	// Completed says that the run has sent RECLAIM_COMPLETE for the client, which the plan lacked until then.
	Completed bool
	// Unended says that the client had state here which the plan has not ended: opens, delegations.
	Unended bool
	// RootReplaced says that PUTROOTFH was sent as PUTFH.
	RootReplaced bool
	// Closes says that CLOSE was sent in place of DELEGRETURN.
	Closes bool
	// Less says that it set fewer attributes than planned, since this server does not support the others.
	Less bool
	// Chunks are the bytes that the reply used of each Write chunk, if the call was
	// laid out as captured; nil otherwise.
	Chunks []uint32
	// Bytes is the size of the reply, data in chunks included; 0 if unknown.
	Bytes int
	// Left is how many bytes of the reply follow the results.
	Left int
	// LaidOut says that the call was laid out as captured.
	LaidOut bool
}

// again reports whether the call was executed at another time than captured, or twice.
func (r *Reply) again() bool { return r.Newest || r.Sent == verdict.Unkept }

// Data returns the bytes of a reply's data.
type Data interface {
	Bytes(xdr.Data) []byte
	// Hash is plan.HashData of b, the bytes of d.
	Hash(d xdr.Data, b []byte) string
}

// Judge compares replies with captured ones. It belongs to one goroutine. It keeps state for
// judging later replies, so replies must be passed in the order in which they arrived.
type Judge struct {
	load    *workload.Workload
	level   Level
	cmp     comparison
	reply   *Reply           // that is being compared
	want    workload.Results // captured results, decoded here
	reader  xdr.Reader
	sizes   []xdr.Reduced
	clones  map[int]*history
	moments *moments
	tick    time.Duration
	shared  bool  // see Options.Shared
	follow  bool  // what a server must hold
	cuts    *cuts // the incompletely captured calls
	// doubtful are the objects that may not have existed, by name.
	doubtful map[place1]*plan.Object
	// madeUp are the names that the capture does not show.
	madeUp map[place1]bool
	// moved are the objects that are prepared elsewhere, by the name that they had.
	moved map[string]int
	// refused are the operations that this server said it lacks.
	refused map[uint32]bool
	names   []string // missing or extra names of a listing
	// invariant checks the replies of all clones, which one server gives.
	invariant *invariant.Checker
}
